"""Where work items come from besides the queue: a directory, the issues of a repository."""

from __future__ import annotations

from wakeful.domains.agents.sources.claims import Claims

__all__ = ["Claims"]
