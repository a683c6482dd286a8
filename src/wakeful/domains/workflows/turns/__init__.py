"""Whose turn it is among the handlers of a workflow."""
