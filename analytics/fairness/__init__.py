"""
Fairness: what each holder of a quota should have, has, is owed, lends and borrows.

All quantities are integer micro-GPU of one pool; only debts and indexes are floats.
"""
