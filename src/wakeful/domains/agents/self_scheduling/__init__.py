"""Schedules that agents make themselves, over MCP.

What must stay true:
- no schedule of an agent goes beyond its bounds: how many, how often, how far ahead, for how long;
- in the mode `ask` none starts anything before a person has approved it, nor after it was changed;
- what it starts follows from the run that made it: its hops, and the mark of text from outside;
- an agent changes only what it made itself, and nothing that a person has changed since.
"""
