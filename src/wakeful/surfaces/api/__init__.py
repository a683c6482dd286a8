"""The server's HTTP surface: what can be asked and done over the network. Rules live below, in the library."""

from __future__ import annotations
