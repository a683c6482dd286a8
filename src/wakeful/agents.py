"""What programs that have agents import; the code is in `domains/agents`."""

from __future__ import annotations

from wakeful.domains.agents import Reply, SessionSettings, Turn, install

__all__ = ["Reply", "SessionSettings", "Turn", "install"]
