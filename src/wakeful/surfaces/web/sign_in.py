"""`/in` and `/out`: a link with a one-time code, or a token, becomes a cookie; signing out ends it on the server."""

from __future__ import annotations

from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from wakeful.kernel.actions.sign_in import SESSION_MS
from wakeful.routing.auth import COOKIE, address_of
from wakeful.routing.problems import ApiError
from wakeful.routing.wiring import Sched, Settings
from wakeful.surfaces.web.rendering import HEADERS, render

ICON = "icon-unsure.svg"

router = APIRouter(include_in_schema=False)

USED = "This link was used already, or is older than ten minutes."
WRONG = "That token is not valid: it does not exist or was revoked, or it is an agent's."
GREETING = "Sign in to see what runs, and why."


def ask(sentence: str, status: int = 200) -> Response:
    """The page that asks for a token."""
    return HTMLResponse(render("in.html", sentence=sentence, icon_file=ICON), status_code=status, headers=HEADERS)


@router.get("/in")
async def sign_in_page() -> Response:
    return ask(GREETING)


@router.get("/in/{code}")
async def redeem(request: Request, code: str, scheduler: Sched, settings: Settings) -> Response:
    """Sign in with the code of a link; it leaves the address bar, and is worth nothing from here on."""
    if request.scope["state"].get("head_only"):  # whoever only looks where a link leads does not use it up
        return ask(GREETING)
    secret = await scheduler.server_side.redeem_code(code)
    return enter(request, secret, settings.public_url) if secret is not None else _refuse(request, USED)


@router.post("/in")
async def sign_in(request: Request, scheduler: Sched, settings: Settings) -> Response:
    """Sign in with a token that was typed in."""
    given = parse_qs((await request.body()).decode("utf-8", "replace")).get("token", [""])[0].strip()
    secret = await scheduler.server_side.sign_in(given)
    return enter(request, secret, settings.public_url) if secret is not None else _refuse(request, WRONG)


def _refuse(request: Request, sentence: str) -> Response:
    """A wrong code or token, of which an address may present only a few. A valid one is never refused for others."""
    failures = request.app.state.gate.failures
    if failures.wait(address_of(request)) > 0:
        return ask("Too many wrong codes or tokens from this address. Wait a minute.", 429)
    failures.count(address_of(request))
    return ask(sentence, 403)


@router.post("/out")
async def sign_out(request: Request, scheduler: Sched) -> Response:
    """End the session on the server, and forget its cookie."""
    secret = request.cookies.get(COOKIE)
    if secret is None and not wants_page(request):
        raise ApiError(401, "unauthorized", "Nobody is signed in here.")
    if secret is not None and await request.app.state.gate.still_valid(secret):
        await scheduler.server_side.sign_out(secret)
    return leave(request)


def wants_page(request: Request) -> bool:
    """Whether this is a person with a browser, and not a program."""
    return "text/html" in request.headers.get("accept", "")


def leave(request: Request) -> Response:
    """To the page that asks for a token. A cookie that is worth nothing any more is forgotten."""
    answer = RedirectResponse("/in", status_code=303, headers=HEADERS)
    if COOKIE in request.cookies:
        answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return answer


def enter(request: Request, secret: str, public_url: str | None) -> Response:
    """To the first page, with the cookie; it travels only encrypted where the server is reached so."""
    answer = RedirectResponse("/", status_code=303, headers=HEADERS)
    encrypted = request.url.scheme == "https" or (public_url or "").startswith("https:")
    answer.set_cookie(
        COOKIE, secret, max_age=SESSION_MS // 1000, path="/", httponly=True, samesite="strict", secure=encrypted
    )
    return answer
