"""What programs import that set how requests are sent; the code is in `domains/http`."""

from __future__ import annotations

from wakeful.domains.http import HttpSettings, install
from wakeful.outbound import OutboundPolicy

__all__ = ["HttpSettings", "OutboundPolicy", "install"]
