"""A page and its regions: what each shows, and when it is fetched again.

A region is rendered with the page, and alone at `/ui/PAGE/REGION` with the page's own parameters. Its answer has an
ETag, so that one that did not change costs no more than its head.
"""

from __future__ import annotations

import gzip
import hashlib
import shlex
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from string import Formatter
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from fastapi import Request
from markupsafe import Markup
from starlette.responses import HTMLResponse, Response

from wakeful.errors import InvalidTrigger
from wakeful.kernel.context import Rights
from wakeful.kernel.rules.verdict import Verdict
from wakeful.routing.auth import Caller
from wakeful.scheduler import Scheduler
from wakeful.surfaces.web.assets import address
from wakeful.surfaces.web.rendering import HEADERS, Times, linked, quoted, render
from wakeful.triggers.zones import zone

#: The mark of a verdict, with which a title begins: a shape, not a colour.
MARKS = {
    "well": "●",
    "quiet": "○",
    "empty": "○",
    "needs_you": "◆",
    "failing": "■",
    "behind": "◷",
    "stalled": "▲",
    "unsure": "?",
}
#: The shape and the tone of a verdict on the page.
SHAPES = {
    "well": ("ok", "ok"),
    "quiet": ("idle", ""),
    "empty": ("idle", ""),
    "needs_you": ("waiting", "wait"),
    "failing": ("error", "bad"),
    "behind": ("deferred", "wait"),
    "stalled": ("crashed", "bad"),
    "unsure": ("unknown", "wait"),
}


#: The icon of the tab: a shape for what is well, what needs a person, what is wrong, and what is not known.
ICONS = {
    "well": "well",
    "quiet": "well",
    "empty": "well",
    "needs_you": "needs",
    "failing": "wrong",
    "behind": "needs",
    "stalled": "wrong",
    "unsure": "unsure",
}
LONGEST_ZONE = 64
SMALL = 1_000  # bytes below which compressing is not worth it


class PageRequest(NamedTuple):
    """A request for a page or a region: who asks, what for, and when."""

    scheduler: Scheduler
    caller: Caller
    rights: Rights
    path: Mapping[str, str]
    """What the address names, such as a job."""
    query: Mapping[str, str]
    times: Times
    theme: str = ""
    """`light` or `dark`, where that was chosen; else the system's."""
    packs: bool = False
    """Whether the reader takes compressed answers."""

    @property
    def may_act(self) -> bool:
        """Whether buttons are shown; the API decides for itself."""
        return self.caller.may("operator")

    def may_write(self, kind: str) -> bool:
        """Whether buttons that change or remove a job of this kind are shown."""
        return self.may_act and (self.is_admin or kind not in self.scheduler.server_side.admin_kinds)

    @property
    def is_admin(self) -> bool:
        return self.caller.may("admin")


Facts = Callable[[PageRequest], Awaitable[dict[str, Any]]]


class Region(NamedTuple):
    """A part of a page that is fetched again by itself."""

    name: str
    live: tuple[str, ...]
    """The streams after whose events it may have changed."""
    facts: Facts


class WebPage(NamedTuple):
    """A page: its template is `NAME.html`, those of its regions are `NAME/REGION.html`."""

    name: str
    path: str
    title: Callable[[PageRequest], str]
    regions: tuple[Region, ...]
    twin: Callable[[PageRequest], str]
    """The command that says the same."""
    tab: str | None = None
    """Which entry of the navigation is this one; None: the one of its name."""
    facts: Facts | None = None
    """What the page shows outside its regions."""
    role: str = "viewer"
    """Who may see it."""
    template: str | None = None
    """The template, where it is not `NAME.html`."""

    def names(self) -> set[str]:
        """What its address has a place for, such as the name of a job."""
        return {name for _, name, _, _ in Formatter().parse(self.path.replace(":path", "")) if name}

    def region(self, name: str) -> Region | None:
        return next((one for one in self.regions if one.name == name), None)


def command(words: str, query: Mapping[str, str], flags: Mapping[str, str]) -> str:
    """The command for a page with these filters, each quoted: what an address gives is one word."""
    given = [
        (flag, query[name]) for name, flag in flags.items() if query.get(name, "").isprintable() and query.get(name)
    ]
    return " ".join(["wakeful", words, *(f"{flag} {shlex.quote(text)}".strip() for flag, text in given)])


async def show(page: WebPage, asked: PageRequest) -> Response:
    """The whole page."""
    verdict = await asked.scheduler.get_verdict()
    regions = {one.name: await render_region(page, one, asked, verdict) for one in page.regions}
    own = await page.facts(asked) if page.facts is not None else {}
    text = render(
        page.template or f"{page.name}.html", **common(asked, verdict), **{"twin": page.twin(asked), **own}, page=page,
        title=page.title(asked), region=regions.__getitem__,
    )  # fmt: skip
    return packed(text, asked)


def packed(text: str, asked: PageRequest, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A page, compressed for a reader that takes it so; pages hold no secret, so that gives nothing away."""
    answer = HTMLResponse(text, status_code=status, headers={**HEADERS, **(headers or {})})
    if asked.packs and len(answer.body) > SMALL:
        answer.body = gzip.compress(answer.body, 5, mtime=0)
        answer.headers["Content-Encoding"] = "gzip"
        answer.headers["Content-Length"] = str(len(answer.body))
    answer.headers["Vary"] = "Cookie, Accept-Encoding"
    return answer


async def show_region(page: WebPage, region: Region, asked: PageRequest, request: Request) -> Response:
    """One region, or 304 for a reader that has it as it is."""
    verdict = await asked.scheduler.get_verdict()
    text = await render_region(page, region, asked, verdict)
    tag = f'"{hashlib.sha256(text.encode()).hexdigest()[:20]}"'
    headers = {"ETag": tag, "Wakeful-Verdict": verdict.state}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers={**HEADERS, **headers})
    return packed(text, asked, headers=headers)


async def render_region(page: WebPage, region: Region, asked: PageRequest, verdict: Verdict) -> Markup:
    facts = await region.facts(asked)
    here = render_attributes(page, region, asked)
    return render(f"{page.name}/{region.name}.html", **common(asked, verdict), **facts, here=here)


def render_attributes(page: WebPage, region: Region, asked: PageRequest) -> Markup:
    """What the outermost element of a region carries for the script."""
    source = f"/ui/{page.name}/{region.name}"
    given = {**asked.query, **{f"_{name}": value for name, value in asked.path.items()}}
    source += f"?{urlencode(given, quote_via=quote)}" if given else ""
    return Markup('id="{}" data-region="{}" data-live="{}"').format(region.name, source, " ".join(region.live))


def common(asked: PageRequest, verdict: Verdict) -> dict[str, Any]:
    """What every template may use."""
    return {
        "verdict": verdict,
        "mark": MARKS[verdict.state],
        "shape": SHAPES[verdict.state],
        "caller": asked.caller,
        "may_act": asked.may_act,
        "is_admin": asked.is_admin,
        "times": asked.times,
        "query": defaultdict(str, asked.query),
        "quoted": quoted,
        "linked": linked,
        "theme": asked.theme,
        "icons": {state: address(f"icon-{name}.svg") for state, name in ICONS.items()},
    }


def times_of(scheduler: Scheduler, wanted: str = "") -> Times:
    """Times as a reader in that zone has them; days begin in the server's zone, as in its sums."""
    home = scheduler.host.default_zone
    return Times(scheduler.clock.now(), wanted if is_zone(wanted) else home, home)


@lru_cache(maxsize=256)
def is_zone(name: str) -> bool:
    """Whether a browser's word for its zone is one that is known here."""
    try:
        return bool(name) and len(name) <= LONGEST_ZONE and zone(name).name == name
    except InvalidTrigger:
        return False
