"""The routes of all pages, of their regions, and of the stream that says when to fetch them again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import parse_qs, unquote

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from wakeful.errors import SchedulerError
from wakeful.kernel.views.nearness import near_names
from wakeful.routing.auth import anyone
from wakeful.routing.problems import ApiError
from wakeful.routing.rights import rights_of
from wakeful.routing.wiring import Sched, Settings
from wakeful.surfaces.api.front import listing
from wakeful.surfaces.web import (
    agents,
    assets,
    deliveries,
    edit,
    finding,
    incidents,
    job,
    jobs,
    more,
    nodes,
    now,
    runs,
    sign_in,
    simulation,
    stream,
    workflows,
)
from wakeful.surfaces.web.pages import Asked, Page, common, packed, show, show_region, times_of
from wakeful.surfaces.web.rendering import HEADERS, render

#: The narrower addresses first.
PAGES: tuple[Page, ...] = (
    now.page,
    jobs.page,
    edit.new_page,
    edit.page,
    job.slot_page,
    job.page,
    runs.page,
    runs.run_page,
    agents.page,
    agents.agent_page,
    workflows.page,
    workflows.workflow_page,
    deliveries.page,
    deliveries.delivery_page,
    incidents.alerts_page,
    incidents.monitors_page,
    nodes.page,
    nodes.events_page,
    more.page,
    finding.page,
    simulation.page,
)

router = APIRouter(include_in_schema=False)
#: The theme that was chosen, and the zone that the script found the browser in.
THEME, ZONE = "wakeful-theme", "wakeful-zone"
THEMES = ("light", "dark")


def wants_page(request: Request) -> bool:
    """Whether this is a person with a browser, and not a program."""
    return "text/html" in request.headers.get("accept", "")


async def asked(request: Request, scheduler: Sched, settings: Settings) -> Asked:
    """Who asks for a page, and what for; ApiError for callers who may not."""
    caller = await anyone(request)
    if caller.is_agent:
        raise ApiError(403, "forbidden", f"Token {caller.name} has the role agent; pages need viewer.")
    rights = await rights_of(caller, settings, scheduler)
    path, query = dict(request.path_params), dict(request.query_params)
    if request.url.path.startswith("/ui/"):  # a region has the parameters of its page's address in its own query
        path |= {name[1:]: value for name, value in query.items() if name.startswith("_")}
        query = {name: value for name, value in query.items() if not name.startswith("_")}
    theme = request.cookies.get(THEME, "")
    packs = "gzip" in request.headers.get("accept-encoding", "")
    times = times_of(scheduler, unquote(request.cookies.get(ZONE, "")))
    return Asked(scheduler, caller, rights, path, query, times, theme if theme in THEMES else "", packs)


def page_route(page: Page) -> Callable[..., Awaitable[Response]]:
    async def get(request: Request, scheduler: Sched, settings: Settings) -> Response:
        if page.path == "/" and not wants_page(request):
            return listing()
        try:
            given = await asked(request, scheduler, settings)
        except ApiError as error:
            if error.status != 401 or not wants_page(request):
                raise
            return RedirectResponse("/in", status_code=303, headers=HEADERS)
        if not given.caller.may(page.role):
            return await refuse(page, given)
        return await answer(page, given)

    return get


async def refuse(page: Page, given: Asked) -> Response:
    """A page that says which role the wanted one is for."""
    sentence = f"You are signed in as {given.caller.role}; this page is for {page.role}s."
    facts = common(given, await given.scheduler.get_verdict())
    text = render("missing.html", **facts, title="Not allowed", sentence=sentence, page=page, near=[], kind="jobs")
    return packed(text, given, 403)


async def answer(page: Page, given: Asked) -> Response:
    """The page, or one that says what is not there."""
    try:
        return await show(page, given)
    except SchedulerError as error:
        if error.status != 404:
            raise
        facts = common(given, await given.scheduler.get_verdict())
        name, kind = next(iter(given.path.values()), ""), page.tab or page.name
        near = await given.scheduler.read(lambda tx: near_names(tx, name)) if kind == "jobs" else []
        text = render(
            "missing.html", **facts, title="Not found", sentence=str(error), page=page, near=near, kind=kind
        )  # fmt: skip
        return packed(text, given, 404)


@router.get("/ui/{page_name}/{region_name}")
async def get_region(
    request: Request, page_name: str, region_name: str, scheduler: Sched, settings: Settings
) -> Response:
    page = next((one for one in PAGES if one.name == page_name), None)
    region = page.region(region_name) if page is not None else None
    if page is None or region is None:
        raise ApiError(404, "not_found", "There is no such part of a page. Reload the page.")
    return await show_region(page, region, await asked(request, scheduler, settings), request)


@router.post("/theme")
async def choose_theme(request: Request, scheduler: Sched, settings: Settings) -> Response:
    """Keep the theme that was chosen; the system's where it is neither light nor dark."""
    await asked(request, scheduler, settings)
    wanted = parse_qs((await request.body()).decode("utf-8", "replace")).get("theme", [""])[0]
    answered = RedirectResponse("/more", status_code=303, headers=HEADERS)
    if wanted in THEMES:
        answered.set_cookie(THEME, wanted, max_age=31_536_000, path="/", httponly=True, samesite="strict")
    else:
        answered.delete_cookie(THEME, path="/", httponly=True, samesite="strict")
    return answered


def routers() -> list[APIRouter]:
    """All routes of the dashboard."""
    pages = APIRouter(include_in_schema=False)
    for page in PAGES:
        pages.add_api_route(page.path, page_route(page), methods=["GET"], response_model=None)
    return [assets.router, sign_in.router, stream.router, router, pages]
