"""What agents and sessions add to the HTTP server, by subject."""

from __future__ import annotations
