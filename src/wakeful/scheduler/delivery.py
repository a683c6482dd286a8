"""What the scheduler sends to people: messages, and the connectors they go through. The rules are in their domain."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import Any, Protocol, cast

from wakeful.domains import load_part
from wakeful.scheduler.core import Core


class Connectors(Protocol):
    """The connectors of one scheduler."""

    def register(self, name: str, send: Callable[[Any], Any]) -> Callable[[], None]:
        """Send what is delivered to `name` with a function or a connector; call the answer to end that."""

    def touch(self, name: str, sender: str, agent: str | None = None) -> Awaitable[None]:
        """Record that a person wrote through a connector: `last` routes there from now on.

        Await it to be sure that it is stored.
        """

    def listen(self, listener: Callable[[Any], Any], connector: str | None = None) -> Callable[[], None]:
        """Call `listener(message)` with what paired people write, in one chat or in all; call the answer to end that.

        It is called on the node that receives, so register it on every node.
        """

    def hand_over(self, name: str) -> None: ...

    async def deliver(self, text: str, *, to: str, title: str | None, agent: str | None, urgent: bool) -> str: ...


class DeliveryApi(Core):
    """What can be sent, and where to."""

    @cached_property
    def connectors(self) -> Connectors:
        """Where messages go: `register` a function that sends them, and `touch` when a person was heard from.

        >>> unregister = scheduler.connectors.register("pager", lambda message: print(message.text))
        """
        return cast("Connectors", load_part("connectors")(self))

    async def deliver(
        self, text: str, *, to: str = "last", title: str | None = None, agent: str | None = None, urgent: bool = False
    ) -> str:
        """Store a message, send it, and return its id.

        `to` is a connector, or `last`: the connector through which a person last wrote.
        `urgent` messages do not wait for the end of quiet hours.

        >>> unregister = scheduler.connectors.register("pager", lambda message: print(message.text))
        >>> await scheduler.deliver("The disk is full.", to="pager", urgent=True)
        'dlv_...'
        """
        return await self.connectors.deliver(text, to=to, title=title, agent=agent, urgent=urgent)
