"""Calls to the Bot API: one method at a time, and what its answer means."""

from __future__ import annotations

import dataclasses
import json
import re
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from wakeful.domains.http import HttpSettings, Poster
from wakeful.errors import SchedulerError
from wakeful.kernel.rules.outcome import beginning

if TYPE_CHECKING:
    from wakeful.clock import Clock

BASE_URL = "https://api.telegram.org"
ANSWER_MOST = 8 * 1024 * 1024  # a hundred updates
SAID_MOST = 300
#: No further attempt can help: the token is wrong, the person blocked the bot, the message cannot be sent as it is.
FOR_GOOD = frozenset({400, 401, 403, 404, 413})
_TOKEN = re.compile(r"[A-Za-z0-9:_-]{4,200}", re.ASCII)


class BotError(SchedulerError):
    """A call that did not do what it should; `answered` is 0 where no answer came that could be read."""

    def __init__(
        self, message: str, *, answered: int = 0, retry_after: float | None = None, sent: bool = False
    ) -> None:
        """`sent`: the request may have arrived all the same."""
        super().__init__(message)
        self.answered = answered
        self.retry_after = retry_after
        self.sent = sent


def check_token(value: str) -> str:
    if _TOKEN.fullmatch(value) is None:
        raise ValueError("must be the token of a bot, such as 123456:ABC-DEF, as BotFather shows it")
    return value


class BotApi:
    """One bot."""

    def __init__(self, token: str, base_url: str | None, clock: Clock, settings: HttpSettings | None = None) -> None:
        self._token = token
        self._base = (base_url or BASE_URL).rstrip("/")
        self._clock = clock
        self._settings = settings
        self._poster: Poster | None = None

    def _open(self) -> Poster:
        if self._poster is None:  # loads what it takes with the first call
            settings = self._settings if self._settings is not None else HttpSettings()
            self._poster = Poster(self._clock, dataclasses.replace(settings, body_most=ANSWER_MOST))
        return self._poster

    async def call(self, method: str, params: Mapping[str, Any]) -> Any:
        """The result of a method; BotError where there is none."""
        body = json.dumps(params, ensure_ascii=False)
        return await self._post(method, "application/json", body)

    async def send_document(self, params: Mapping[str, str], name: str, content: str) -> Any:
        """Send a text as a file."""
        mark = secrets.token_hex(16)
        parts = [f'--{mark}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{params[key]}' for key in params]
        head = f'Content-Disposition: form-data; name="document"; filename="{name}"'
        parts.append(f"--{mark}\r\n{head}\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n{content}")
        body = "\r\n".join([*parts, f"--{mark}--", ""])
        return await self._post("sendDocument", f"multipart/form-data; boundary={mark}", body)

    async def _post(self, method: str, content_type: str, body: str) -> Any:
        url = f"{self._base}/bot{self._token}/{method}"
        try:
            answer = await self._open().post(url, {"Content-Type": content_type}, body)
        except SchedulerError as error:
            text = str(error).replace(url, f"{self._base}/{method}").replace(self._token, "***")
            raise BotError(text, sent=bool(getattr(error, "sent", False))) from None
        return read_answer(answer.status, answer.said.replace(self._token, "***"), answer.retry_after)


def read_answer(status: int, body: str, retry_after: int | None) -> Any:
    """The result in an answer, or BotError with what the service said."""
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("ok"), bool):
        first = next((line.strip() for line in body.splitlines() if line.strip()), "nothing")
        raise BotError(f"answered {status} with what is no answer of the Bot API: {first[:100]}", sent=status < 300)
    if found["ok"]:
        return found.get("result")
    given = found.get("parameters")
    wait = given.get("retry_after") if isinstance(given, dict) else None
    if isinstance(wait, bool) or not isinstance(wait, int | float) or not 0 <= wait <= 86_400:
        wait = retry_after / 1000 if retry_after is not None else None
    code = found.get("error_code")
    code = code if isinstance(code, int) else status
    said = beginning(str(found.get("description") or "no reason given"), SAID_MOST)
    raise BotError(f"answered {code}: {said}", answered=code, retry_after=wait)
