"""Drawings: pure functions from facts to SVG text. Widths are in percent, so one text fits every screen."""
