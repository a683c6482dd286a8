"""External triggers: started by something other than time."""

from __future__ import annotations

from wakeful.triggers.base import Trigger


class Webhook(Trigger):
    """Fires on an authenticated HTTP request."""

    __slots__ = ()
    type = "webhook"

    def describe(self) -> str:
        return "when its webhook is called"

    def __repr__(self) -> str:
        return "Webhook()"


class Chat(Trigger):
    """Fires on a message that a connector brings."""

    __slots__ = ()
    type = "chat"

    def describe(self) -> str:
        return "when a chat message arrives"

    def __repr__(self) -> str:
        return "Chat()"


class Manual(Trigger):
    """Fires when a person or a program asks for it."""

    __slots__ = ()
    type = "manual"

    def describe(self) -> str:
        return "only when asked to"

    def __repr__(self) -> str:
        return "Manual()"
