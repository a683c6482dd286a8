"""Real processes, really killed: what survives, counted.

`python -m tests.chaos` (`make chaos`) is the long run; test_kill.py is a short one that belongs to every test run.
"""

from __future__ import annotations
