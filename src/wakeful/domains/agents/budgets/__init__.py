"""Budgets: how many runs, how much money and how many tokens agents may use in a day, each and together.

What must stay true:
- a run reserves what it may cost in the transaction that claims it, and its end settles that once, however it ends;
- what is settled and reserved never exceeds a budget, but for what a run cost beyond what it reserved;
- what a day has spent is the sum of what its runs reported or were charged;
- a day counts what began on it.
"""
