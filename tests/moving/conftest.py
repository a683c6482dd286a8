"""A command line to type at, as for the tests of the command line itself."""

from __future__ import annotations

from tests.cli.conftest import here, store, wakeful

__all__ = ["here", "store", "wakeful"]
