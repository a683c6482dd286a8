"""Sending to people on Telegram."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wakeful.domains.delivery.chat.buttons import buttons_of, keyboard
from wakeful.domains.delivery.connector import Arrived, Message, Permanent, Temporary, Unclear
from wakeful.domains.delivery.outbox import unpaired
from wakeful.domains.delivery.telegram.api import FOR_GOOD, BotApi, BotError
from wakeful.domains.delivery.telegram.formatting import PARTS_MOST, as_html, parts, whole

if TYPE_CHECKING:
    from wakeful.clock import Clock
    from wakeful.domains.delivery.telegram.polling import Receiver
    from wakeful.domains.http import HttpSettings
    from wakeful.scheduler import Scheduler

REFUSED_MARKUP = ("can't parse entities", "empty")  # in what Telegram says of tags; the second of tags around nothing
FILE_NAME = "message.txt"


class TelegramConnector:
    """One bot: sends to the person in a message's `to`, and receives while the engine runs."""

    type = "telegram"

    def __init__(
        self,
        name: str,
        token: str,
        clock: Clock,
        *,
        allow_from: Sequence[int | str] = (),
        base_url: str | None = None,
        settings: HttpSettings | None = None,
    ) -> None:
        self.name = name
        self.allow_from = [str(sender) for sender in allow_from]
        self.account = hashlib.sha256(token.encode()).hexdigest()
        self.api = BotApi(token, base_url, clock, settings)
        self.secrets = [token, token.partition(":")[2]]
        self._arrived = Arrived(token)
        self._receiver: Receiver | None = None

    # -- sending ------------------------------------------------------------------------------------------------------

    async def send(self, message: Message) -> None:
        if message.to is None:
            raise Permanent(unpaired(self.name))
        calls = self._calls(message)
        for index, (text, more) in enumerate(calls):
            if index < self._arrived.of(message, len(calls)):
                continue
            try:
                await self._send_part(message.to, text, more)
            except BotError as error:
                raise _as_failure(error) from None
            self._arrived.note(message, index + 1, len(calls))
        self._arrived.forget(message)

    def _calls(self, message: Message) -> list[tuple[str, dict[str, Any]]]:
        """The parts of a message, each with what goes along; a very long one is its first part and a file."""
        text = whole(message.title, message.text)
        found: list[tuple[str, dict[str, Any]]] = [(part, {}) for part in parts(text)]
        if len(found) > PARTS_MOST:
            found = [found[0], (text, {"document": FILE_NAME})]
        buttons = buttons_of(message.extra)
        if buttons:
            last = max(index for index, (_, more) in enumerate(found) if "document" not in more)
            found[last] = (found[last][0], {"reply_markup": {"inline_keyboard": keyboard(message.id, buttons)}})
        return found

    async def _send_part(self, chat: str, text: str, more: dict[str, Any]) -> None:
        if "document" in more:
            await self.api.send_document({"chat_id": chat}, str(more["document"]), text)
            return
        params = {"chat_id": chat_id(chat), "link_preview_options": {"is_disabled": True}, **more}
        html = as_html(text)
        if html is not None:
            try:
                await self.api.call("sendMessage", {**params, "text": html, "parse_mode": "HTML"})
            except BotError as error:
                said = str(error).lower()
                if error.answered != 400 or not any(word in said for word in REFUSED_MARKUP):
                    raise
            else:
                return
        await self.api.call("sendMessage", {**params, "text": text})

    # -- receiving ----------------------------------------------------------------------------------------------------

    def begin(self, scheduler: Scheduler) -> None:
        from wakeful.domains.delivery.telegram.polling import Receiver

        self._receiver = Receiver(scheduler, self)
        self._receiver.begin()

    async def end(self) -> None:
        if self._receiver is not None:
            receiver, self._receiver = self._receiver, None
            await receiver.end()


def chat_id(sender: str) -> int | str:
    return int(sender) if sender.lstrip("-").isdigit() else sender


def _as_failure(error: BotError) -> Exception:
    """What an error of the Bot API means for the attempt."""
    if error.answered in FOR_GOOD:
        return Permanent(str(error))
    kind = Unclear if error.sent else Temporary
    return kind(str(error), retry_after=error.retry_after)
