"""The tests, as a package of their own, so that no other `tests` on the path can stand in for it."""
