"""`webhook`: a POST per message, signed as Standard Webhooks."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from wakeful.domains.delivery.connector import Message, Permanent, Temporary, Unclear
from wakeful.domains.http import HttpSettings, Poster
from wakeful.errors import SchedulerError
from wakeful.kernel.rules.outcome import beginning
from wakeful.outbound import read_address
from wakeful.triggers.moments import iso

if TYPE_CHECKING:
    from wakeful.clock import Clock

#: What no further attempt can change: the message is refused as it is, or the address is gone for good.
REFUSED = frozenset({400, 405, 410, 413, 414, 415, 422, 431})
SAID_MOST = 200
PREFIX = "whsec_"


def read_secret(text: str) -> bytes:
    """The key behind a secret; ValueError for one that is none."""
    given = text.removeprefix(PREFIX)
    try:
        key = base64.b64decode(given + "=" * (-len(given) % 4), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not 16 <= len(key) <= 64:
        raise ValueError("must be whsec_ and 24 to 64 random bytes in base64")
    return key


def signature(key: bytes, number: str, timestamp: int, body: str) -> str:
    """The signature of one attempt."""
    signed = f"{number}.{timestamp}.{body}".encode()
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode("ascii")


def body_of(message: Message) -> str:
    """What is posted: the same for every attempt."""
    content: dict[str, Any] = {"type": message.type, "timestamp": iso(message.at), "data": message.data()}
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


class WebhookConnector:
    """Posts messages to one address."""

    type = "webhook"

    def __init__(
        self,
        url: str,
        clock: Clock,
        *,
        secret: str | None = None,
        headers: Mapping[str, str] | None = None,
        settings: HttpSettings | None = None,
    ) -> None:
        self._url = url
        self._clock = clock
        self._key = read_secret(secret) if secret is not None else None
        self._headers = dict(headers or {})
        self._settings = settings
        self._poster: Poster | None = None
        values = [value for text in self._headers.values() for value in (text, text.partition(" ")[2])]
        path, _, query = read_address(url).target.partition("?")
        # In many services the path is the key.
        self.secrets = [url, path, query, *([secret, secret.removeprefix(PREFIX)] if secret else []), *values]

    def _open(self) -> Poster:
        if self._poster is None:  # loads what it takes with the first message
            self._poster = Poster(self._clock, self._settings)
        return self._poster

    async def send(self, message: Message) -> None:
        body = body_of(message)
        timestamp = self._clock.now() // 1000
        headers = {"Content-Type": "application/json", **self._headers}
        headers |= {"webhook-id": message.id, "webhook-timestamp": str(timestamp)}
        if self._key is not None:
            headers["webhook-signature"] = signature(self._key, message.id, timestamp, body)
        try:
            answer = await self._open().post(self._url, headers, body)
        except SchedulerError as error:
            kind = Unclear if getattr(error, "sent", False) else Temporary
            raise kind(str(error)) from None
        if 200 <= answer.status < 300:
            return
        said = f"answered {answer.status}{_words(answer.said)}"
        if answer.status in REFUSED:
            raise Permanent(said)
        raise Temporary(said, retry_after=None if answer.retry_after is None else answer.retry_after / 1000)


def _words(body: str) -> str:
    """The first line of an answer that is not a page of markup."""
    first = next((line.strip() for line in body.splitlines() if line.strip()), "")
    return f": {beginning(first, SAID_MOST)}" if first and not first.startswith("<") else ""
