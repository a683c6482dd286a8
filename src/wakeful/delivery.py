"""What programs import that send messages; the code is in `domains/delivery`."""

from __future__ import annotations

import sys

from wakeful.domains.delivery import Post, button, connector, enqueue
from wakeful.domains.delivery.connector import Permanent, Temporary, Unclear

__all__ = ["Permanent", "Post", "Temporary", "Unclear", "button", "enqueue"]

sys.modules[f"{__name__}.connector"] = connector  # where these errors were before, as `os` does with `os.path`
