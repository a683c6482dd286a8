"""`python -m wakeful.cli`, for where the `wakeful` script is not on PATH."""

from __future__ import annotations

import sys

from wakeful.cli import main

sys.exit(main())
