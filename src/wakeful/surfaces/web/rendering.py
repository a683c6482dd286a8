"""Templates become pages: everything is escaped, and times, durations and texts from outside have one form."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

import jinja2
from jinja2.ext import Extension
from markupsafe import Markup, escape

from wakeful.counting import counted
from wakeful.kernel.views.reasons import REASONS
from wakeful.kernel.views.slots import WHY
from wakeful.surfaces.web.assets import address
from wakeful.surfaces.web.marks import said
from wakeful.triggers.moments import from_ms, iso, to_ms
from wakeful.triggers.zones import place_named

CSP = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
#: Without a referrer, a browser says of a form of our own that it comes from nowhere, and it would be refused.
HEADERS = {
    "Content-Security-Policy": CSP,
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
    "Vary": "Cookie",
}
LONGEST_TEXT = 2_000
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    r"\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff\ud800-\udfff]"
)
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


class Unindented(Extension):
    """Templates without their indentation, which is for those who read them."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:  # noqa: ARG002
        return re.sub(r"\n +(?=[<{])", "\n", source)


@lru_cache(maxsize=1)
def environment() -> jinja2.Environment:
    """Made once; a name that a template misspells is an error."""
    found = jinja2.Environment(
        loader=jinja2.PackageLoader("wakeful.surfaces.web"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[Unindented],
    )
    found.filters |= {
        "visible": visible,
        "cut": cut,
        "span": span,
        "iso": wire,
        "because": because,
        "counted": counted,
        "money": money,
        "number": number,
        "part": part,
    }
    found.tests["has_word"] = lambda one: hasattr(one, "word")
    found.globals |= {"asset": address, "icon": icon, "said": said}
    return found


def render(template: str, **facts: Any) -> Markup:
    """A template with these facts, as safe text."""
    return Markup(environment().get_template(template).render(**facts))  # noqa: S704 - the environment escapes


def visible(text: object) -> str:
    """Text from outside with its control, direction and zero-width characters made visible."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}" if found[0] != "\r" else "", str(text))


def cut(text: object, most: int = LONGEST_TEXT) -> str:
    """The beginning of a long text."""
    shown = str(text)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def span(ms: float) -> str:
    """A duration in its two largest units: `1 h 27 min`, `42 s`, `350 ms`."""
    if 0 < ms < 1_000:
        return f"{int(ms)} ms"
    seconds, parts = int(ms // 1000), list[str]()
    for size, name in _UNITS:
        if seconds >= size or (name == "s" and not parts):
            parts.append(f"{seconds // size} {name}")
            seconds %= size
        elif parts:
            break
        if len(parts) == 2:
            break
    return " ".join(part for part in parts if not (part.startswith("0 ") and len(parts) > 1))


def wire(at: datetime | int) -> str:
    """A moment as ISO 8601 in UTC."""
    return iso(at if isinstance(at, int) else to_ms(at))


def because(why: str) -> str:
    """Why a slot waits or was passed over, in words."""
    return WHY.get(why) or REASONS.get(why, why.replace("_", " "))


def money(amount: float) -> str:
    """`$3.82`; amounts below a cent keep their digits."""
    return f"${amount:,.2f}" if amount == 0 or amount >= 0.005 else f"${amount:.4f}"


def number(value: int) -> str:
    """`16,402`."""
    return f"{value:,}"


def part(name: str) -> str:
    """A name as one part of an address, in which its own slashes part nothing."""
    return quote(name, safe="")


@lru_cache(maxsize=1_024)
def icon(shape: str, tone: str = "", label: str | None = None) -> Markup:
    """One of the shapes that stand for states and outcomes."""
    about = Markup('role="img" aria-label="{}"').format(label) if label is not None else Markup('aria-hidden="true"')
    tones = f"i {tone}" if tone else "i"
    return Markup('<svg class="{}" {}><use href="#{}"/></svg>').format(tones, about, shape)


def _time(about: str, text: str) -> Markup:
    """A moment for people and for programs; made without `format`, since a page of runs has a hundred of them."""
    return Markup(f"<time {about}>{text}</time>")  # noqa: S704 - numbers and our own words


class Times:
    """Times as people read them, in one zone, as of one moment; days begin at home."""

    def __init__(self, now: int, zone: str, home: str | None = None) -> None:
        self.now = now
        self.zone = zone
        self._zone = ZoneInfo(zone)
        self._home = ZoneInfo(home or zone)
        self._today = self._local(now).date()

    def clock(self, at: datetime | int) -> Markup:
        """`14:35`, with the day where that is another one: `Tue 14:35`, `3 Nov 14:35`, `2024-11-03 14:35`."""
        local = self._local(at)
        days = abs((local.date() - self._today).days)
        form = "%H:%M" if days == 0 else "%a %H:%M" if days < 7 else "%-d %b %H:%M"
        if local.year != self._today.year:
            form = "%Y-%m-%d %H:%M"
        return _time(f'datetime="{wire(at)}"', local.strftime(form))

    def there(self, at: datetime | int, zone: str | None) -> str:
        """`08:35` in another zone, where clocks differ there; else nothing."""
        local, other = self._local(at), self._local(at).astimezone(place_named(zone) or self._zone)
        same = local.utcoffset() == other.utcoffset()
        return "" if same else other.strftime("%H:%M" if other.date() == local.date() else "%a %H:%M")

    def plain(self, at: datetime | int) -> str:
        """`14:35`, and nothing else."""
        return self._local(at).strftime("%H:%M")

    def day(self, at: datetime | int) -> str:
        """`Tue 17`."""
        return self._local(at).strftime("%a %-d")

    def until(self, at: datetime | int) -> Markup:
        """`in 2 min 52 s`, counted down by the script."""
        left = self._ms(at) - self.now
        text = f"in {span(left)}" if left > 0 else "now"
        return _time(f'data-until="{wire(at)}" datetime="{wire(at)}"', text)

    def since(self, at: datetime | int) -> Markup:
        """`42 s`: how long it has lasted, counted up by the script."""
        lasted = span(max(0, self.now - self._ms(at)))
        return _time(f'data-since="{wire(at)}" datetime="{wire(at)}"', lasted)

    def ago(self, at: datetime | int) -> Markup:
        """`3 min ago`."""
        lasted = span(max(0, self.now - self._ms(at)))
        return _time(f'data-ago="{wire(at)}" datetime="{wire(at)}"', f"{lasted} ago")

    def wire_clock(self, at: str) -> Markup:
        """`clock` of a time in an answer."""
        return self.clock(datetime.fromisoformat(at))

    def wire_until(self, at: str) -> Markup:
        """`until` of a time in an answer."""
        return self.until(datetime.fromisoformat(at))

    def hour(self, at: int) -> int:
        """The hour of the wall clock."""
        return self._local(at).hour

    def whole_hour(self, at: int) -> int:
        """The last whole hour of the wall clock."""
        local = self._local(at)
        return at - (local.minute * 60 + local.second) * 1000 - local.microsecond // 1000

    def midnight(self) -> int:
        """When the day of this moment began, at home."""
        start = from_ms(self.now).astimezone(self._home).replace(hour=0, minute=0, second=0, microsecond=0)
        return to_ms(start.astimezone(UTC))

    def _ms(self, at: datetime | int) -> int:
        return at if isinstance(at, int) else to_ms(at)

    def _local(self, at: datetime | int) -> datetime:
        return (from_ms(at) if isinstance(at, int) else at).astimezone(self._zone)


_ANSI = re.compile(r"\x1b\[([0-9;]*)m|\x1b\[[0-9;?]*[A-Za-ln-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_COLOURS = {"31": "t-bad", "91": "t-bad", "32": "t-ok", "92": "t-ok", "33": "t-wait", "93": "t-wait", "35": "t-crash"}


def ansi(text: str) -> Markup:
    """What a program printed to a terminal: its colours as classes, other control characters visible."""
    parts, at, tone = list[Markup](), 0, ""
    for found in [*_ANSI.finditer(text), None]:
        piece = visible(text[at : found.start() if found is not None else len(text)])
        if piece:
            shown = escape(piece)
            parts.append(Markup('<span class="{}">{}</span>').format(tone, shown) if tone else shown)
        if found is not None:
            at = found.end()
            codes = (found[1] or "").split(";") if found[1] is not None else []
            tone = next((_COLOURS[code] for code in codes if code in _COLOURS), "" if found[1] is not None else tone)
    return Markup("").join(parts)


_RUN = re.compile(r"\brun_[0-9a-z]{13}\b")


def linked(text: object, most: int = 1_000) -> Markup:
    """A sentence of ours, in which the runs it names are links."""
    shown, parts, at = cut(visible(text), most), [], 0
    for found in _RUN.finditer(shown):
        parts += [
            escape(shown[at : found.start()]),
            Markup('<a class="mono" href="/runs/{0}">{0}</a>').format(found[0]),
        ]
        at = found.end()
    return Markup("<bdi>{}</bdi>").format(Markup("").join([*parts, escape(shown[at:])]))


def quoted(text: object, most: int = 300) -> Markup:
    """What an agent, a person or a program wrote, apart from our own words."""
    return Markup("<bdi>{}</bdi>").format(escape(cut(visible(text), most)))
