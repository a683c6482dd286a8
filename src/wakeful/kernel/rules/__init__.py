"""Decisions as pure functions of records, options and a `now`: nothing here reads a clock or a store."""
