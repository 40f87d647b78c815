"""
Who pays what for which GPU-time.

    usage.py         stays on nodes, cut by day, price and team       -> usage lines
    capacity.py      nodes: idle, unavailable, overlap                -> capacity lines, the books' sum
    teams.py         who a stay belongs to, and what that team is called
    distribution.py  who bears idle capacity
    statement.py     exact charges -> rows that sum to the cent
    settle.py        all of it, for a month
"""
