"""Senders of webhooks, in the same process: what they sign, and a client for the whole server without a socket."""

from __future__ import annotations

import hashlib
import hmac
import json
from functools import partial

import httpx

from wakeful.routing.auth import admit
from wakeful.routing.settings import ServerSettings
from wakeful.surfaces.api.app import create_app
from wakeful.surfaces.api.guard import Guard

SECRET = "planted-hook-secret"  # noqa: S105 - planted
HOST = "http://127.0.0.1:7878"


def hook(verify="github", prompt=None, **more):
    """A webhook schedule."""
    written = {"webhook": {"verify": verify, "secret": SECRET}, **more}
    return written if prompt is None else {**written, "prompt": prompt}


def signed(body, delivery=None, secret=SECRET, event="push", **headers):
    """Headers as GitHub sends them."""
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    named = {} if delivery is None else {"X-GitHub-Delivery": delivery}
    own = {"Content-Type": "application/json", "X-GitHub-Event": event, "X-Hub-Signature-256": f"sha256={digest}"}
    return {**own, **named, **headers}


def bytes_of(payload):
    return payload if isinstance(payload, bytes) else json.dumps(payload).encode()


class Sender:
    """Calls hooks of a scheduler through everything a request goes through but the socket."""

    def __init__(self, scheduler, **settings):
        known = ServerSettings(**settings)
        app = create_app(scheduler, known)
        guarded = Guard(app, known, admit=partial(admit, gate=app.state.gate))
        self.gate = app.state.gate
        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(app=guarded), base_url=HOST)

    async def send(self, payload, delivery=None, *, to="a/deploy", **more):
        body = bytes_of(payload)
        return await self.post(to, body, signed(body, delivery, **more))

    async def post(self, to, body, headers):
        return await self.client.post(f"/hooks/{to}", content=body, headers=headers)
