"""The command line with the sample domain: what a program does that brings a domain of its own."""

from __future__ import annotations

import sys

from wakeful import domains
from wakeful.cli import main

domains.register("tests.sample")

if __name__ == "__main__":
    sys.exit(main())
