"""
The books of fairness: from lives and the history of quotas to pools, entitlements and debts over time.

`site` says who had which quota and which nodes there were, `layout` what pools that makes, `course`
what each workload held and asked in them, and `sweep` goes through all of it in order of time.
"""
