"""Apprise: mail, chats and a hundred more services behind one kind of URL. Loaded with the first message.

It is asked in a thread, with a new object for each message: an object of its own throttles itself for seconds. It
writes errors to its log alone; addresses hold secrets and are never shown. Replies of agents are Markdown and are sent
as such to services that show it; everything else is plain text.
"""

from __future__ import annotations

import asyncio
import html
import json
import logging
import re
import threading
import warnings
from functools import cache
from typing import Any

from wakeful.domains.delivery.connector import Arrived, Message, Permanent, Temporary, Unclear, room_of, scrubbed
from wakeful.domains.delivery.rules import SEND_LIMIT_S
from wakeful.domains.delivery.texts import Width, is_visible, split, utf16
from wakeful.errors import InvalidSetting

MISSING = "needs the package apprise: pip install 'wakeful[apprise]'"
LIMIT_S = SEND_LIMIT_S - 2
_CODE = re.compile(r"error=(\d{3})")
_PERMANENT = (400, 410, 413)
TITLE_EXTRA = 8  # what is put around a title that becomes part of the text
LINE_BREAK = 6  # characters of <br />
BLANK = 5  # that &nbsp; and &emsp; have more than what they stand for
TAB = 2  # the same, of the three blanks that Telegram gets for a tab
MENTIONS = 3  # what is put before those who are mentioned
ESCAPES = ("NotifyGoogleChat", "NotifySlack")  # `&`, `<` and `>` in every text
ESCAPED = 4  # what `&amp;` has more than the sign
MARKDOWN = frozenset("\\`*_{}[]()<>#+-.!|~&=:@")  # what is escaped in a text that is shown as Markdown
COUNT_BYTES = ("NotifyIRC", "NotifyWeComBot", "NotifyDingTalk", "NotifyThreema")
COUNT_JSON = ("NotifyFeishu", "NotifyLark", "NotifyPushy", "NotifyFCM")  # the size of the request, as Apprise writes it
NTFY, NTFY_MOST = "NotifyNtfy", 3_900  # bytes: a longer text becomes a file, which most servers of one's own refuse
SLACK_BLOCK, SLACK_HEADER = 3_000, 150  # characters of a text and of a title in a block (`?blocks=yes`)
AS_HTML = ("NotifyPushover",)  # Markdown becomes HTML, without what looks like a tag in it
FOR_INCIDENTS = ("NotifyOpsgenie", "NotifyJira")  # what is only for information is not sent
READ_S = 20.0  # what a service may take to answer: one that took longer may have sent the message, and gets it again
SPREAD_S = 20.0  # within which the parts of one message go out; many services would wait for 5.5 s after each


@cache
def load_apprise() -> Any:
    """The library with all its services; InvalidSetting where it is not installed."""
    try:
        import apprise
    except ImportError:
        raise InvalidSetting(MISSING) from None
    # Its messages may quote an address: they are read from its results, and go nowhere else.
    log = logging.getLogger("apprise")
    log.setLevel(logging.WARNING)
    log.propagate = False
    log.addHandler(logging.NullHandler())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what its services load is not ours to mend
        apprise.Apprise().add("json://localhost")
    return apprise


def check_url(url: str) -> None:
    """InvalidSetting for an address that Apprise does not know; it is not repeated."""
    if not _service(url):
        scheme = url.partition("://")[0]
        known = f" ({scheme}://)" if scheme.isalnum() and len(scheme) < 20 and "://" in url else ""
        raise InvalidSetting(f"must be an address that Apprise knows, such as ntfys://host/topic{known}")


def _service(url: str) -> Any:
    """A new Apprise with this one address; None where it does not know it."""
    apprise = load_apprise()
    asset = apprise.AppriseAsset(http_redirects=False, service_timeout=LIMIT_S)
    # Text from agents must not choose a file to attach.
    found = apprise.Apprise(asset=asset, location=apprise.ContentLocation.INACCESSIBLE)
    return found if found.add(url) else None


def _knows_markdown(service: Any) -> bool:
    """Whether the service shows Markdown; for one that does not, Apprise would rewrite the text."""
    return all(
        str(getattr(one.resolve_format("markdown"), "value", "")) == "markdown" and type(one).__name__ not in AS_HTML
        for one in service
    )


def parts_for(service: Any, title: str, text: str, style: str) -> tuple[str, list[str]]:
    """The title and the parts of a text, each as long as the service takes it, the title included.

    Many services have no titles, or count them with the text. One that is too long for a title begins the text.
    """
    limit = min(_limit_of(one) for one in service)
    widths = [_width_for(one, style) for one in service]
    title_most = min((_title_limit_of(one) for one in service), default=0)

    def width(given: str) -> int:
        return max(count(given) for count in widths)

    if title and (width(title) > limit // 2 or len(title) > title_most > 0):
        title, text = "", f"{title}\n\n{text}"
    lines = min((int(getattr(one, "body_max_line_count", 0)) or len(text) for one in service), default=0)
    if text.count("\n") >= lines:  # a small screen, which shows so many and drops the others
        text = " ".join(text.split())
    room = limit - (width(title) + TITLE_EXTRA if title else 0)
    parts = split(text if is_visible(text) else "-", limit, width, first=room)
    return title, [part for part in parts if is_visible(part)]


def _title_limit_of(one: Any) -> int:
    limit = int(getattr(one, "title_maxlen", 0))
    return min(limit, SLACK_HEADER) if getattr(one, "use_blocks", False) else limit


def _limit_of(one: Any) -> int:
    """How long a part may be, as `_width_for` counts."""
    limit = (int(getattr(one, "body_maxlen", 0)) or 32_768) - _mentions(one)
    if getattr(one, "use_blocks", False):
        return min(limit, SLACK_BLOCK)
    return min(limit, NTFY_MOST) if type(one).__name__ == NTFY else limit


def _mentions(one: Any) -> int:
    """How much of every part goes to those whom the address mentions (`?ping=@everyone`)."""
    names = getattr(one, "ping", None)
    return MENTIONS + sum(utf16(str(name)) + 1 for name in names) if isinstance(names, list) and names else 0


def _width_for(one: Any, style: str) -> Width:
    """How long a service takes a text to be. Telegram counts what is shown, others also what Apprise adds to it."""
    name = type(one).__name__
    if name in COUNT_BYTES:
        return lambda text: len(text.encode("utf-8", "replace"))
    if name in COUNT_JSON:
        return lambda text: len(json.dumps(text))
    if name == NTFY:  # the request may have twice as many
        return lambda text: max(len(text.encode("utf-8", "replace")), len(json.dumps(text)) // 2)
    shown = str(getattr(one.resolve_format(style), "value", style)) if hasattr(one, "resolve_format") else style
    if name == "NotifyTelegram" and shown != "markdown":
        return lambda text: utf16(text) + TAB * text.count("\t")
    if name == "NotifyTelegram" or (shown == "text" and name not in ESCAPES):
        return utf16
    if shown == "html":
        return lambda text: (
            utf16(html.escape(text)) + LINE_BREAK * text.count("\n") + BLANK * (text.count(" ") + text.count("\t"))
        )
    more = ESCAPED if name in ESCAPES else 0
    return lambda text: utf16(text) + sum(1 + more * (letter in "&<>") for letter in text if letter in MARKDOWN)


class AppriseConnector:
    """Sends to one Apprise URL."""

    type = "apprise"

    def __init__(self, url: str, name: str = "apprise") -> None:
        self._url = url
        self._room = room_of(name)
        self._arrived = Arrived(url)
        rest = url.partition("://")[2]
        self.secrets = [url, rest, *(part for part in re.split(r"[/@:?&=]", rest) if len(part) > 5)]

    async def send(self, message: Message) -> None:
        over = threading.Event()
        try:
            async with asyncio.timeout(LIMIT_S):
                await self._room.call(self._send, message, over)
        except TimeoutError:
            raise Unclear(f"no answer within {LIMIT_S:g} s: it may have arrived") from None
        finally:
            over.set()

    def _send(self, message: Message, over: threading.Event) -> None:
        """Send the parts that have not arrived, until the attempt is `over`."""
        try:
            service = _service(self._url)
        except InvalidSetting as error:
            raise Temporary(str(error)) from None
        if service is None:
            raise Permanent("Apprise does not know this address")
        style = "markdown" if message.kind == "reply" and _knows_markdown(service) else "text"
        title, parts = parts_for(service, message.title or "", message.text, style)
        for one in service:
            if one.socket_read_timeout == type(one).socket_read_timeout:  # the address says nothing of it (`?rto=`)
                one.socket_read_timeout = max(READ_S, one.socket_read_timeout)
            one.request_rate_per_sec = min(one.request_rate_per_sec, SPREAD_S / (len(parts) * max(1, len(one))))
        for number, part in enumerate(parts):
            if number < self._arrived.of(message, len(parts)):
                continue
            if over.is_set():
                return
            self._notify(service, part, title if number == 0 else "", style)
            self._arrived.note(message, number + 1, len(parts))
        self._arrived.forget(message)

    def _notify(self, service: Any, text: str, title: str, style: str) -> None:
        what = "warning" if any(type(one).__name__ in FOR_INCIDENTS for one in service) else "info"
        result = service.notify(
            body=text, title=title, notify_type=what, body_format=style, timeout=LIMIT_S, log_level=30
        )
        try:
            if result:
                return
            said = " ".join(str(entry.message) for entry in result.logs())
        finally:
            result.close()
        words = scrubbed(said, self).strip() or "the service did not take it"
        code = _CODE.search(said)
        if getattr(result.status, "name", "") in ("TIMEOUT", "PARTIAL"):
            raise Unclear(words)
        if code is not None and int(code[1]) in _PERMANENT:
            raise Permanent(words)
        raise Temporary(words)
