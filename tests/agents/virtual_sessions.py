"""A session server in virtual time: httpx asks it directly, and no network is needed for an hour to pass."""

from __future__ import annotations

import json

import httpx

from wakeful.domains.agents import SessionSettings, install


class VirtualSessions(httpx.AsyncBaseTransport):
    """Answers each message with what `act(number, message)` says: (status, body) or an exception to raise."""

    def __init__(self, scene, act=None):
        self.scene = scene
        self.act = act or (lambda number, message: (200, {"reply": number}))
        self.made = 0
        self.messages = []  # (when, message)
        self.keys = []
        self.discarded = []
        self.states = {}

    async def handle_async_request(self, request):
        parts = request.url.path.strip("/").split("/")
        if request.method == "DELETE":
            self.discarded.append(parts[-1])
            return httpx.Response(204)
        if request.method == "GET":
            return httpx.Response(200, json=self.states.get(parts[-1], {"status": "running"}))
        if parts[-1] == "sessions":
            self.made += 1
            return httpx.Response(201, json={"id": f"s-{self.made}"})
        message = json.loads(await request.aread())
        self.messages.append((self.scene.now, message))
        self.keys.append(request.headers["idempotency-key"])
        answer = self.act(len(self.messages), message)
        if hasattr(answer, "__await__"):
            answer = await answer
        if isinstance(answer, Exception):
            raise answer
        status, body = answer
        return httpx.Response(status, json=body)

    @property
    def times(self):
        return [when for when, _ in self.messages]

    def scheduler(self, **options):
        """A scheduler on the scene's store that talks to these sessions."""
        settings = {key: options.pop(key) for key in ("deadline_ms", "max_kept") if key in options}
        made = self.scene.scheduler("job", **options)
        install(made, SessionSettings(url="http://sessions", callback_url="http://here", transport=self, **settings))
        return made
