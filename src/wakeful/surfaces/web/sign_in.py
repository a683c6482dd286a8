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
    failures = request.app.state.gate.failures
    if failures.wait(address_of(request)) > 0:
        return ask("Too many wrong codes from this address. Wait a minute.", 429)
    secret = await scheduler.server_side.redeem_code(code)
    if secret is None:
        failures.count(address_of(request))
        return ask(USED, 403)
    return enter(request, secret, settings.public_url)


@router.post("/in")
async def sign_in(request: Request, scheduler: Sched, settings: Settings) -> Response:
    """Sign in with a token that was typed in."""
    given = parse_qs((await request.body()).decode("utf-8", "replace")).get("token", [""])[0].strip()
    failures = request.app.state.gate.failures
    if failures.wait(address_of(request)) > 0:
        return ask("Too many wrong tokens from this address. Wait a minute.", 429)
    secret = await scheduler.server_side.sign_in(given)
    if secret is None:
        failures.count(address_of(request))
        return ask(WRONG, 403)
    return enter(request, secret, settings.public_url)


@router.post("/out")
async def sign_out(request: Request, scheduler: Sched) -> Response:
    """End the session on the server, and forget its cookie."""
    secret = request.cookies.get(COOKIE)
    if secret is None:
        raise ApiError(401, "unauthorized", "Nobody is signed in here.")
    await scheduler.server_side.sign_out(secret)
    answer = RedirectResponse("/in", status_code=303, headers=HEADERS)
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
