"""Where facts, what is derived from them, and what was said are kept: DuckDB in one process."""
