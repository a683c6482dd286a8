"""Handlers with steps: one function per event, whose effects are recorded one by one."""
