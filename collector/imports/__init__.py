"""Jobs from tables of other schedulers: what a row says, and the facts that it becomes."""
