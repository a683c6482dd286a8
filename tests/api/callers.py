"""Callers of a server without a socket: one client, and the tokens of those who use it."""

from __future__ import annotations

from functools import partial

import httpx

from wakeful.routing.auth import admit
from wakeful.routing.settings import ServerSettings
from wakeful.surfaces.api.app import create_app
from wakeful.surfaces.api.guard import Guard

HOST = "http://127.0.0.1:7878"


class Callers:
    """`await callers.ask("fox", "POST /api/jobs/x/run", {...})`: a request of the token of that name."""

    def __init__(self, scheduler, **settings):
        known = ServerSettings(**settings)
        self.scheduler, self.app = scheduler, create_app(scheduler, known)
        self.guarded = Guard(self.app, known, admit=partial(admit, gate=self.app.state.gate))
        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(app=self.guarded), base_url=HOST)
        self.secrets = {}

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.app.state.gate.finish()
        await self.client.aclose()

    async def add(self, name, role):
        """A token of that name and role."""
        self.secrets[name] = await self.scheduler.create_token(name, role)

    async def ask(self, who, request, body=None, **headers):
        """Send it as that caller; None: as one without a token."""
        method, _, path = request.partition(" ")
        known = {"Authorization": f"Bearer {self.secrets[who]}"} if who is not None else {}
        return await self.client.request(method, path, json=body, headers={**known, **headers})
