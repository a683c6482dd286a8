"""What programs import that set where alerts are sent; the code is in `domains/alerts`."""

from __future__ import annotations

from wakeful.domains.alerts import configure, snooze

__all__ = ["configure", "snooze"]
