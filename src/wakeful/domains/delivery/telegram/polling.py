"""Receiving from Telegram: long polling by one node at a time, and the answers to what people press.

An update is taken in the transaction that moves the position past it. A node that dies before that leaves the update to
the next poller; one that dies after it leaves answers to presses and messages to hand over, which are stored.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from wakeful.domains.delivery.chat import receiving
from wakeful.domains.delivery.chat.receiving import BotAccount, ChatUpdate
from wakeful.domains.delivery.chat.tables import AnswerRow, Chats
from wakeful.domains.delivery.connector import scrubbed
from wakeful.domains.delivery.telegram.api import BotError
from wakeful.errors import SchedulerError, StoreError
from wakeful.kernel.engine.alerts import close_alert, open_alert
from wakeful.services import Service

if TYPE_CHECKING:
    from wakeful.domains.delivery.telegram.connector import TelegramConnector
    from wakeful.kernel.context import Context
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction

log = logging.getLogger("wakeful.delivery")

RECEIVING = "receiving"
POLL_S = 25
POLL_LIMIT_S = POLL_S + 15
CALL_LIMIT_S = 10
WAIT_S = 5.0  # while another node polls, and after trouble; two pollers of one bot must leave each other 3 s
REFUSED_WAIT_S = 30.0
UPDATES = ["message", "callback_query", "my_chat_member"]  # the service remembers the last list it was given
ANSWERS_AT_ONCE = 20
BROKEN = "This did not work: see the server's log."
#: Errors that need a person: a wrong token, or another program that polls with it.
TROUBLE = {401: "the token is wrong", 404: "the token is wrong", 409: "another program receives with this token"}


class Receiver(Service):
    """Receives for one connector while the engine runs."""

    def __init__(self, scheduler: Scheduler, connector: TelegramConnector) -> None:
        super().__init__(f"receiving for {connector.name}", 0.0, retry=WAIT_S)
        self._scheduler = scheduler
        self._connector = connector
        self._api = connector.api
        self._prepared = False
        self._troubled = ""
        self._alerted: bool | None = None  # None: one may be open from an earlier process

    @property
    def _account(self) -> BotAccount:
        return BotAccount(self._connector.account, self._connector.name, self._scheduler.host.node_id)

    async def end(self) -> None:
        if not self.is_running:
            return
        await super().end()
        account = self._account
        try:
            await self._scheduler.transact(lambda tx, _: receiving.give_up_lease(tx, account))
        except SchedulerError as error:
            log.debug("%s: the lease runs out by itself: %s", self._connector.name, error)

    async def run_once(self) -> float:
        """Take what is there, or wait for it; for how long to do nothing then."""
        account = self._account
        position = await self._scheduler.transact(lambda tx, _: receiving.take_lease(tx, account))
        if position is None:
            self._prepared = False
            return WAIT_S
        try:
            updates = await self._poll(position)
        except BotError as error:
            return await self._refused(error)
        except TimeoutError:
            return self._say_once(f"no answer within {POLL_LIMIT_S} s")
        await self._well()
        for update in updates:
            if isinstance(update, dict) and isinstance(update.get("update_id"), int):
                await self._take(account, update)
        self._hand_over()
        return 0

    async def _poll(self, position: int) -> list[Any]:
        if not self._prepared:
            async with asyncio.timeout(CALL_LIMIT_S):
                await self._api.call("deleteWebhook", {"drop_pending_updates": False})
            self._prepared = True
        self._hand_over()
        # A poll is short while a press is still to be answered, and after trouble, whose end should show at once.
        all_answered = await self._answer()
        wait = POLL_S if all_answered and self._alerted is False else 1
        async with asyncio.timeout(POLL_LIMIT_S):
            params = {"offset": position, "limit": 100, "timeout": wait, "allowed_updates": UPDATES}
            found = await self._api.call("getUpdates", params)
        return found if isinstance(found, list) else []

    # -- updates ------------------------------------------------------------------------------------------------------

    async def _take(self, account: BotAccount, raw: dict[str, Any]) -> None:
        transact = self._scheduler.transact
        update = read_update(raw)
        if update is None:
            await transact(lambda tx, _: receiving.skip(tx, account, raw["update_id"]))
            return
        try:
            found = await receiving.read(self._scheduler, account, update)
            said = await transact(lambda tx, context: receiving.take(tx, context, account, update, found))
        except StoreError:
            raise
        except Exception as error:
            why = scrubbed(str(error), self._connector) if isinstance(error, SchedulerError) else BROKEN
            if why is BROKEN or update.query is None:
                log.exception("%s: an update could not be used and is left out", self._connector.name)
            await transact(lambda tx, context: receiving.refuse(tx, context, account, update, why))
            return
        if said is not None and update.chat is not None:
            await self._say(update.chat, said)

    async def _say(self, chat: str, text: str) -> None:
        """Answer a person who is not paired; if the answer does not arrive, they can ask again."""
        try:
            async with asyncio.timeout(CALL_LIMIT_S):
                await self._api.call("sendMessage", {"chat_id": chat, "text": text})
        except (BotError, TimeoutError) as error:
            log.debug("%s: %s", self._connector.name, error)

    def _hand_over(self) -> None:
        self._scheduler.connectors.hand_over(self._connector.name)

    # -- answers to presses -------------------------------------------------------------------------------------------

    async def _answer(self) -> bool:
        """Answer presses; whether none is left."""
        name = self._connector.name
        rows = await self._scheduler.read(lambda tx: tx.of(Chats).answers(name, ANSWERS_AT_ONCE))
        for row in rows:
            if not await self._answer_one(row):
                return False
            await self._scheduler.transact(partial(_answered, row.id))
        return len(rows) < ANSWERS_AT_ONCE

    async def _answer_one(self, row: AnswerRow) -> bool:
        """Whether the press needs no further answer: one that is too old, or unchanged buttons, cannot be helped."""
        calls: list[tuple[str, dict[str, Any]]] = [
            ("answerCallbackQuery", {"callback_query_id": row.query, "text": row.said})
        ]
        if row.buttons is not None and row.chat is not None and row.message is not None:
            markup = {"inline_keyboard": json.loads(row.buttons)}
            place = {"chat_id": row.chat, "message_id": int(row.message)}
            calls.append(("editMessageReplyMarkup", {**place, "reply_markup": markup}))
        for method, params in calls:
            try:
                async with asyncio.timeout(CALL_LIMIT_S):
                    await self._api.call(method, params)
            except BotError as error:
                if error.answered in (0, 429) or error.answered >= 500:
                    return False
                log.debug("%s: %s: %s", self._connector.name, method, error)
            except TimeoutError:
                return False
        return True

    # -- trouble ------------------------------------------------------------------------------------------------------

    async def _refused(self, error: BotError) -> float:
        reason = TROUBLE.get(error.answered)
        text = scrubbed(str(error), self._connector)
        self._say_once(f"{reason}: {text}" if reason is not None else text)
        self._prepared = False
        if reason is None:
            return max(WAIT_S, min(error.retry_after or 0, 300))
        name, message = self._connector.name, f"{self._connector.name} cannot receive: {reason} ({text})."
        await self._scheduler.transact(lambda tx, context: open_alert(tx, context, RECEIVING, name, message))
        self._alerted = True
        return WAIT_S if error.answered == 409 else REFUSED_WAIT_S

    async def _well(self) -> None:
        self._troubled = ""
        if self._alerted is not False:
            name = self._connector.name
            await self._scheduler.transact(lambda tx, context: close_alert(tx, context, RECEIVING, name))
            self._alerted = False

    def _say_once(self, text: str) -> float:
        """Log trouble once, not every few seconds."""
        if text != self._troubled:
            log.warning("%s: %s", self._connector.name, text)
            self._troubled = text
        return WAIT_S


def _answered(number: int, tx: Transaction, _: Context) -> None:
    tx.of(Chats).answered(number)


def read_update(raw: Mapping[str, Any]) -> ChatUpdate | None:
    """A message in a private chat, or a press; None for everything else."""
    query = raw.get("callback_query")
    if isinstance(query, dict):
        return _press(raw["update_id"], query)
    message = raw.get("message")
    if not isinstance(message, dict):
        return None
    sender, chat = message.get("from"), message.get("chat")
    if not isinstance(sender, dict) or not isinstance(chat, dict) or sender.get("is_bot"):
        return None
    if chat.get("type") != "private" or chat.get("id") != sender.get("id"):
        return None
    text = message.get("text") or message.get("caption")
    text = text if isinstance(text, str) else ""
    return ChatUpdate(raw["update_id"], str(sender.get("id")), _name(sender), text, chat=str(chat["id"]))


def _press(position: int, query: Mapping[str, Any]) -> ChatUpdate | None:
    sender, message = query.get("from"), query.get("message")
    if not isinstance(sender, dict) or query.get("id") is None:
        return None
    data = query.get("data")
    place: tuple[str | None, str | None] = (None, None)
    if isinstance(message, dict) and isinstance(message.get("chat"), dict):
        number = message.get("message_id")
        place = (str(message["chat"].get("id")), str(number) if isinstance(number, int) else None)
    said = data if isinstance(data, str) else ""
    return ChatUpdate(
        position, str(sender.get("id")), _name(sender), press=said, query=str(query["id"]), chat=place[0],
        message=place[1],
    )  # fmt: skip


def _name(sender: Mapping[str, Any]) -> str | None:
    found = " ".join(str(sender[key]) for key in ("first_name", "last_name") if sender.get(key))
    printable = "".join(letter for letter in found if letter.isprintable())
    return printable[:100] or None
