"""What `explain` says about an agent's jobs beside what it says about every job.

Each part of the story is a function of the subject and what the job does; add one to `PARTS` to say more.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from wakeful.agents.budgets.spending import used_today
from wakeful.agents.hops import hops_of
from wakeful.agents.inbound.receiving import explained
from wakeful.agents.naming import session_name, wake_job
from wakeful.agents.runners.presets import PRESETS
from wakeful.agents.runners.spec import account_of
from wakeful.agents.tables import AgentTables
from wakeful.agents.work import item_text
from wakeful.kernel.views import outgoing

if TYPE_CHECKING:
    from wakeful.kernel.views.stories import Subject

SHOWN_EVENTS = 3
SHOWN_TEXT = 80
UNSENT = {
    "ok-ack": "the agent had nothing to report",
    "ok-empty": "the reply was empty",
    "silent": "deliver is none",
}


def story(subject: Subject) -> list[str]:
    """The sentences about a job or a run of an agent."""
    payload: dict[str, Any] = json.loads(subject.job.payload)
    return [sentence for part in PARTS for sentence in part(subject, payload)]


def _wake(subject: Subject, payload: dict[str, Any]) -> list[str]:
    """What the agent is to be woken for."""
    if subject.of_run or payload["does"] == "ask":
        return []
    agent = payload["agent"]
    verb = {"beat": "It wakes", "event": "It leaves an event for", "wake": "It runs when something wakes"}
    found = [f"{verb[payload['does']]} {agent}{'' if payload['does'] == 'wake' else f', which {agent}.wake runs'}."]
    number = _wake_number(subject, payload)
    wake = subject.tx.of(AgentTables).wake(number) if number is not None else None
    if wake is None:
        return [*found, "No wake waits."]
    return [*found, f"A wake ({wake.reason}) waits, asked for at {subject.when(wake.requested_at)}."]


def _events(subject: Subject, payload: dict[str, Any]) -> list[str]:
    """What it is to hear, or heard."""
    tables = subject.tx.of(AgentTables)
    if subject.of_run:
        return _heard(subject, payload)
    number = _wake_number(subject, payload)
    if payload["does"] == "ask" or number is None:
        return []
    waiting = tables.waiting(number)
    if not waiting:
        return ["No system event waits."]
    verb = "waits" if len(waiting) == 1 else "wait"
    texts = "; ".join(f"[{event.source or 'event'}] {_short(event.text)}" for event in waiting[:SHOWN_EVENTS])
    more = ", …" if len(waiting) > SHOWN_EVENTS else ""
    return [f"{_count(len(waiting), 'system event')} {verb} for the next run: {texts}{more}."]


def _heard(subject: Subject, payload: dict[str, Any]) -> list[str]:
    run, output = subject.run, _output(subject)
    if run is None or payload["does"] != "wake":
        return []
    hops = hops_of(subject.tx, run.id)
    led = [f"{_count(hops, 'run')} of agents led to it."] if hops else []
    if run.outcome is None:
        bound = len(subject.tx.of(AgentTables).given_to(run.id))
        return [*led, f"It was given {_count(bound, 'system event')}."] if bound else led
    if output.get("events"):
        return [*led, f"It received {_count(output['events'], 'system event')}."]
    return led


def _session(subject: Subject, payload: dict[str, Any]) -> list[str]:
    """The session it goes on in."""
    if payload.get("runner") is None:
        return []
    if subject.of_run:
        session = _output(subject).get("session")
        return [f"Its session was {session}."] if session else []
    policy = payload.get("session", "persistent")
    if policy == "ephemeral" or not _keeps_sessions(payload["runner"]):
        return ["Each run begins a session of its own."]
    name = session_name(payload)
    kept = subject.tx.of(AgentTables).session(name)
    if kept is None:
        return ["No session is kept yet: the next run begins one."]
    return [f"It goes on in the session {kept.session} ({name}), used last at {subject.when(kept.used_at)}."]


def _limit(subject: Subject, payload: dict[str, Any]) -> list[str]:
    """The rate limit of its account."""
    account = account_of(payload.get("runner") or {})
    limit = subject.tx.of(AgentTables).limit(account) if account is not None and not subject.of_run else None
    if limit is None or limit[0] <= subject.tx.now:
        return []
    return [f"The account {account} is at its rate limit until {subject.when(limit[0])}: {limit[1].rstrip('.')}."]


def _work(subject: Subject, payload: dict[str, Any]) -> list[str]:
    """The item it works on, and how many wait."""
    if not payload.get("work"):
        return []
    tables = subject.tx.of(AgentTables)
    item = tables.item_of(subject.run.id) if subject.run is not None else None
    found = [f"It works on {item_text(item.id)}, {_short(item.title)!r}."] if item is not None else []
    if subject.of_run:
        done = _output(subject).get("item")
        return found or ([f"It worked on {done}."] if done else [])
    number = _wake_number(subject, payload)
    waiting = tables.ready_counts([number]).get(number, 0) if number is not None else 0
    verb = "waits" if waiting == 1 else "wait"
    return [*found, f"{_count(waiting, 'work item')} {verb}." if waiting else "No work item waits."]


def _delivery(subject: Subject, _: dict[str, Any]) -> list[str]:
    """What became of the reply."""
    run, outcome = subject.run, _output(subject).get("outcome")
    if run is None or outcome is None:
        return []
    if outcome in UNSENT:
        return [f"Its reply was not sent: {UNSENT[outcome]}."]
    sent = [one for source in outgoing.SOURCES.values() for one in source(subject.tx, [run.id]).get(run.id, [])]
    if not sent:
        return ["Its reply was not sent: there is no connector."]
    return [f"Its reply is {one['id']} to {one['connector'] or 'no connector yet'}: {_state(one)}." for one in sent]


def _budget(subject: Subject, _: dict[str, Any]) -> list[str]:
    """What it and all agents used today."""
    return [] if subject.of_run else used_today(subject.tx, subject.job)


def _request(subject: Subject, _: dict[str, Any]) -> list[str]:
    """What came in from outside that it works on."""
    return explained(subject.tx, subject.run) if subject.of_run and subject.run is not None else []


PARTS: tuple[Callable[[Subject, dict[str, Any]], list[str]], ...] = (
    _wake,
    _request,
    _events,
    _work,
    _session,
    _limit,
    _budget,
    _delivery,
)


def _keeps_sessions(runner: dict[str, Any]) -> bool:
    """Whether the runner can go on in a session."""
    if runner.get("preset") is not None:
        preset = PRESETS.get(runner["preset"])
        return preset is not None and preset.resume is not None
    return runner.get("start") is None or runner.get("resume") is not None


def _wake_number(subject: Subject, payload: dict[str, Any]) -> int | None:
    name = wake_job(payload["agent"])
    return subject.job.id if subject.job.name == name else subject.tx.jobs.names([name]).get(name)


def _output(subject: Subject) -> dict[str, Any]:
    details = subject.tx.runs.details(subject.run.id) if subject.run is not None else None
    output = json.loads(details.output) if details is not None and details.output is not None else None
    return output if isinstance(output, dict) else {}


def _state(delivery: dict[str, Any]) -> str:
    error = f", {delivery['last_error'].rstrip('.')}" if delivery["last_error"] else ""
    return f"{delivery['status']}{error}"


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= SHOWN_TEXT else f"{text[: SHOWN_TEXT - 1]}…"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
