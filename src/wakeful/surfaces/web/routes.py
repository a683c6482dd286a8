"""The routes of all pages, of their regions, and of the stream that says when to fetch them again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import parse_qs, unquote

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from wakeful.errors import SchedulerError
from wakeful.routing.addresses import as_sent
from wakeful.routing.auth import anyone, rights_of
from wakeful.routing.problems import ApiError
from wakeful.routing.wiring import scheduler_of, settings_of
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
from wakeful.surfaces.web.pages import PageRequest, WebPage, show, show_region, times_of
from wakeful.surfaces.web.refusals import NOWHERE, explain, explain_plainly, refuse, wrong_role
from wakeful.surfaces.web.rendering import HEADERS
from wakeful.surfaces.web.sign_in import wants_page

#: The narrower addresses first.
PAGES: tuple[WebPage, ...] = (
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
#: Addresses that only programs and our own script ask for.
ELSEWHERE = ("/api/", "/ui/", "/static/", "/in/")


async def asked(request: Request) -> PageRequest:
    """Who asks for a page, and what for; ApiError for callers who may not."""
    scheduler, settings = await scheduler_of(request), await settings_of(request)
    caller = await anyone(request)
    if caller.is_agent:
        raise ApiError(403, "forbidden", f"Token {caller.name} has the role agent; pages need viewer.")
    rights = await rights_of(caller, settings, scheduler)
    path, query = {name: as_sent(value) for name, value in request.path_params.items()}, dict(request.query_params)
    if request.url.path.startswith("/ui/"):  # a region has the parameters of its page's address in its own query
        path = {name[1:]: value for name, value in query.items() if name.startswith("_")}
        query = {name: value for name, value in query.items() if not name.startswith("_")}
    theme = request.cookies.get(THEME, "")
    packs = "gzip" in request.headers.get("accept-encoding", "")
    times = times_of(scheduler, unquote(request.cookies.get(ZONE, "")))
    return PageRequest(scheduler, caller, rights, path, query, times, theme if theme in THEMES else "", packs)


def page_route(page: WebPage) -> Callable[..., Awaitable[Response]]:
    async def get(request: Request) -> Response:
        if page.path == "/" and not wants_page(request):
            return listing()
        return await answer(request, page)

    return get


async def answer(request: Request, page: WebPage) -> Response:
    """The page, or for people one that says why it is not shown."""
    if not wants_page(request):
        given = await asked(request)
        return await show(page, given) if given.caller.may(page.role) else await refuse(page, given)
    try:
        given = await asked(request)
        if not given.caller.may(page.role):
            return await refuse(page, given)
        try:
            return await show(page, given)
        except SchedulerError as error:
            if error.status >= 500:
                raise
            return await explain(page, given, str(error), error.status)
    except SchedulerError as error:
        return explain_plainly(request, error)


async def nothing_here(request: Request) -> Response | None:
    """For people: the page for an address at which there is nothing; None for programs, and where no pages are."""
    if request.method != "GET" or not wants_page(request) or request.url.path.startswith(ELSEWHERE):
        return None
    try:
        return await explain(NOWHERE, await asked(request), "There is nothing at this address.", 404)
    except SchedulerError as error:
        return explain_plainly(request, error)


@router.get("/ui/{page_name}/{region_name}")
async def get_region(request: Request, page_name: str, region_name: str) -> Response:
    page = next((one for one in PAGES if one.name == page_name), None)
    region = page.region(region_name) if page is not None else None
    if page is None or region is None or not page.names() <= {name[1:] for name in request.query_params}:
        raise ApiError(404, "not_found", "There is no such part of a page. Reload the page.")
    given = await asked(request)
    if not given.caller.may(page.role):
        raise ApiError(403, "forbidden", wrong_role(page, given))
    return await show_region(page, region, given, request)


@router.post("/theme")
async def choose_theme(request: Request) -> Response:
    """Keep the theme that was chosen; the system's where it is neither light nor dark."""
    await asked(request)
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
