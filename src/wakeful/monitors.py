"""What programs import that ping their monitors; the code is in `domains/monitors`."""

from __future__ import annotations

from wakeful.domains.monitors import Report, ping, ping_key, rotate_key

__all__ = ["Report", "ping", "ping_key", "rotate_key"]
