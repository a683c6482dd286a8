"""What a person sees instead of a page: to sign in, what is not there, or why it cannot be shown."""

from __future__ import annotations

from difflib import get_close_matches

from fastapi import Request
from starlette.responses import HTMLResponse, Response

from wakeful.errors import SchedulerError
from wakeful.kernel.actions.lookup import near_names
from wakeful.routing.problems import public_text
from wakeful.surfaces.web.pages import PageRequest, WebPage, common, packed
from wakeful.surfaces.web.rendering import HEADERS, render
from wakeful.surfaces.web.sign_in import ICON, leave

NOWHERE = WebPage("nowhere", "", lambda _: "", (), lambda _: "wakeful status")
TITLES = {403: "Not allowed", 404: "Not found"}
STRANGER = (401, 429)  # without a valid token; an address that presents too many wrong ones gets no other answer


def wrong_role(page: WebPage, given: PageRequest) -> str:
    """Which role the wanted page is for."""
    return f"You are signed in as {given.caller.role}; this page is for {page.role}s."


async def refuse(page: WebPage, given: PageRequest) -> Response:
    """A page that says which role the wanted one is for."""
    return await explain(page, given, wrong_role(page, given), 403)


async def explain(page: WebPage, given: PageRequest, sentence: str, status: int) -> Response:
    """A page that says in one sentence why the wanted one is not shown, and what has nearly such a name."""
    kind = page.tab or page.name
    near = await _near(given, kind) if status == 404 else []
    facts = common(given, await given.scheduler.get_verdict())
    title = TITLES.get(status, "Not possible")
    text = render("missing.html", **facts, title=title, sentence=sentence, page=page, near=near, kind=kind)
    return packed(text, given, status)


async def _near(given: PageRequest, kind: str) -> list[str]:
    """Names that are spelled nearly like the one in the address."""
    name = next(iter(given.path.values()), "")
    if kind == "jobs":
        return await given.scheduler.read(lambda tx: near_names(tx, name))
    if kind == "agents":
        return get_close_matches(name, [agent["name"] for agent in await given.scheduler.agents.list()])
    if kind == "workflows":
        return get_close_matches(name, [one["name"] for one in await given.scheduler.workflows.list()])
    return []


def explain_plainly(request: Request, error: SchedulerError) -> Response:
    """The same where nothing can be looked up: for strangers, and while the store is away."""
    if error.status in STRANGER:
        return leave(request)
    if error.status >= 500 and error.status != 503:
        raise error
    text = render("trouble.html", sentence=public_text(error), icon_file=ICON)
    return HTMLResponse(text, status_code=error.status, headers=HEADERS)
