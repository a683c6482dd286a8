"""Chats: connectors through which people also write and press buttons.

What must stay true:
- only paired people count: others cannot start anything, change a route or learn anything;
- what a person wrote or pressed is stored in the transaction that also stores that it was received: it counts once,
  whatever crashes, and whichever node receives;
- a button works once, and only for people whose role allows what it does.
"""

from __future__ import annotations

#: The types of connector whose messages go to people who are paired.
CHAT_TYPES = frozenset({"telegram"})
