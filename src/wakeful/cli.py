"""The command `wakeful`, for programs that start it and for `python -m wakeful.cli`; the code is in `surfaces/cli`."""

from __future__ import annotations

import sys

from wakeful.surfaces.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
