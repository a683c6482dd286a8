"""The runner `url`: a session on a session server, one message per turn. `talking.py` says what its answers mean."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wakeful.domains.agents.answers import NoSession, ServerResponse
from wakeful.domains.agents.effective_payload import effective_payload
from wakeful.domains.agents.naming import AGENT
from wakeful.domains.agents.polling import Polling
from wakeful.domains.agents.runners.calling import looked_up
from wakeful.domains.agents.runners.replies import reply_in
from wakeful.domains.agents.runners.spec import DEFAULT_TIMEOUT_MS
from wakeful.domains.agents.runners.turn import Answered, Gone, Turn
from wakeful.domains.agents.settings import SessionSettings
from wakeful.domains.agents.talking import Talk, find_attempt, number_of, reported
from wakeful.errors import InvalidJob
from wakeful.kernel.rules.outcome import Wait

if TYPE_CHECKING:
    from wakeful.domains.agents.client import SessionClient
    from wakeful.domains.agents.tables import Watch
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction

LOOK_MS = 600_000  # how often the store is read for runs of agents to poll, besides those that this node began


class SessionServers:
    """The session servers that agents of one scheduler live on; work that continues there is polled."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.settings = SessionSettings(name="the runner's url")
        self._clients: dict[tuple[str, int | None], tuple[SessionSettings, SessionClient]] = {}
        self._polling = Polling(scheduler, AGENT, self.settings.poll_s, self._status, self._close, look_ms=LOOK_MS)
        scheduler.host.add_service(self._polling)

    async def ask(
        self, runner: Mapping[str, Any], turn: Turn, on_session: Callable[[str], None]
    ) -> Answered | Gone | Wait:
        """Send the prompt to the turn's session, or to a new one; the reply, or a wait for it. Raises what else."""
        settings, client = self._server(looked_up(runner)[0])
        talk, run, number = Talk(self._scheduler, settings, client), turn.run, number_of(turn.run.id)
        talk.on_watch = self._polling.watch
        attempt = await self._scheduler.transact(lambda tx, _: find_attempt(tx, number))
        session = turn.session
        if attempt.report is not None:
            return Answered(reply_in(reported(attempt.report), session))
        if session is None:
            session = await talk.make(run, runner.get("model"), attempt)
            on_session(session)
        decision = await talk.send(run, turn.prompt, attempt, session)
        if isinstance(decision, NoSession):
            return Gone(decision.why)
        end = await talk.conclude(run, session, decision, runner.get("timeout"))
        return end if isinstance(end, Wait) else Answered(reply_in(end.output, session))

    def _server(self, runner: Mapping[str, Any]) -> tuple[SessionSettings, SessionClient]:
        from wakeful.domains.agents.client import SessionClient  # loads httpx

        key = (runner["url"], runner.get("timeout"))
        if key not in self._clients:
            patience = (DEFAULT_TIMEOUT_MS if key[1] is None else key[1]) / 1000
            settings = replace(self.settings, url=key[0], answer_s=patience)
            self._clients[key] = (settings, SessionClient(settings))
        return self._clients[key]

    async def _status(self, watch: Watch) -> ServerResponse:
        """How a run continues: asked at the server of its agent, as that is configured now."""
        runner = await self._scheduler.read(lambda tx: _runner_of(tx, watch.run_id))
        if runner is None:
            return ServerResponse(problem="its agent is no longer one with a url", lasting=True)
        try:
            return await self._server(looked_up(runner)[0])[1].status(watch.url)
        except InvalidJob as error:
            return ServerResponse(problem=str(error))

    async def _close(self) -> None:
        clients, self._clients = list(self._clients.values()), {}
        for _, client in clients:
            await client.close()


def _runner_of(tx: Transaction, run_id: int) -> Mapping[str, Any] | None:
    run = tx.runs.get(run_id)
    job = tx.jobs.definitions([run.job_id]).get(run.job_id) if run is not None else None
    runner: Mapping[str, Any] = (
        {} if job is None else effective_payload(tx, json.loads(job.payload)).get("runner") or {}
    )
    return runner if runner.get("url") is not None else None
