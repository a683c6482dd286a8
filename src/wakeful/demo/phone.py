"""The phone of the demo: a connector that keeps what it is sent, for the page that draws it."""

from __future__ import annotations

from wakeful.demo.place import DemoFolder
from wakeful.domains.delivery.connector import Message, Temporary

PHONE = "phone"


class Phone:
    """Takes messages, unless it is broken."""

    def __init__(self, place: DemoFolder) -> None:
        self._place = place

    async def send(self, message: Message) -> None:
        if self._place.read().broken:
            raise Temporary("the phone refused the connection")
        self._place.receive(message.line())
