"""The runner `url`: a session on a session server, one message per turn."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from wakeful.agents.answers import (
    Busy,
    Decision,
    Done,
    Failed,
    GoesOn,
    NoSession,
    read_answer,
    read_status,
    same_origin,
    session_id,
)
from wakeful.agents.client import SessionClient
from wakeful.agents.runners.spec import DEFAULT_TIMEOUT_MS
from wakeful.agents.runners.turn import Answered, Ending, Gone, Overloaded, Reply, Surroundings, Turn, Wrong
from wakeful.agents.settings import SessionSettings
from wakeful.clock import sleep

ASK_S = 5.0  # between two questions about work that goes on
REPLIES = ("reply", "result", "output", "text", "message", "answer")


async def ask_server(runner: Mapping[str, Any], turn: Turn, around: Surroundings) -> Ending:
    """Send the prompt to the turn's session, or to a new one, and wait for the answer."""
    seconds = runner.get("timeout", DEFAULT_TIMEOUT_MS) / 1000
    client = SessionClient(SessionSettings(url=runner["url"], answer_s=seconds))
    try:
        async with asyncio.timeout(seconds):
            return await _ask(client, runner, turn, around)
    except TimeoutError:
        return Wrong(f"stopped after its limit of {seconds:g} s", outcome="timeout")
    finally:
        await client.close()


async def _ask(client: SessionClient, runner: Mapping[str, Any], turn: Turn, around: Surroundings) -> Ending:
    session = turn.session
    if session is None:
        made = await client.create(runner.get("model"), f"{turn.run.id}-session")
        session = session_id(made)
        if session is None:
            decision = read_answer(made)
            if isinstance(decision, (Done, GoesOn)):
                return Wrong("the session server made a session and did not say what it is called")
            return _other(decision)
        around.on_session(session)
    message = {"prompt": turn.prompt, "source": "scheduler", "schedule": turn.run.job, "runId": turn.run.id}
    answer = await client.send(session, message, f"{turn.run.id}-{session}")
    decision = read_answer(answer)
    if isinstance(decision, GoesOn):
        decision = await _wait(client, session, decision)
    if not isinstance(decision, Done):
        return _other(decision)
    return Answered(_reply(decision.output, session))


async def _wait(client: SessionClient, session: str, going: GoesOn) -> Done | Failed:
    """Ask until it is over; the turn's time limit ends it."""
    where = going.status_url and same_origin(going.status_url, client.base, client.messages_url(session))
    if not where:
        return Failed(f"{going.why}, and gave no address on its own server to ask at")
    while True:
        found = read_status(await client.status(where))
        if found is not None:
            return found
        await sleep(ASK_S)


def _other(decision: Decision) -> Ending:
    why = getattr(decision, "why", "the session server gave no answer")
    if isinstance(decision, NoSession):
        return Gone(why)
    if isinstance(decision, Failed):
        return Wrong(why)
    return Overloaded(f"the session is busy: {why}" if isinstance(decision, Busy) else why)


def _reply(body: Any, session: str) -> Reply:
    said = body if isinstance(body, dict) else {}
    text = next((said[key] for key in REPLIES if isinstance(said.get(key), str)), None)
    if text is None:
        text = body if isinstance(body, str) else "" if body is None else json.dumps(body, ensure_ascii=False)
    cost = said.get("cost")
    counts = [said.get(key) for key in ("tokens_in", "tokens_out")]
    return Reply(
        text,
        session,
        float(cost) if isinstance(cost, int | float) else None,
        *(count if isinstance(count, int) else None for count in counts),
    )
