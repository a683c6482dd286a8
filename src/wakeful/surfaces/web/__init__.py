"""The dashboard: pages that say whether all is well, what needs a person, and why.

Pages are rendered here and read without script. They hold no SQL and no rules: what they show comes from the views of
the rooms below, and their buttons call the API. A page is a list of regions; each has an address of its own, under
which the script fetches it again after events of the streams it names (`pages.py`).
"""
