"""What `explain` says about an agent's jobs besides what it says about every job.

Each part of the story is a function of the subject and what the job does; add one to `PARTS` to say more.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from wakeful.counting import counted
from wakeful.domains.agents.budgets.spending import counted_as, over_budget, used_today
from wakeful.domains.agents.effective_payload import effective_payload
from wakeful.domains.agents.hops import hops_of
from wakeful.domains.agents.hours import beat_at, opening_of
from wakeful.domains.agents.inbound.receiving import explained
from wakeful.domains.agents.limits.holding import limit_of
from wakeful.domains.agents.naming import HEARTBEAT, session_name, wake_job
from wakeful.domains.agents.runners.presets import PRESETS
from wakeful.domains.agents.runners.spec import limited_as
from wakeful.domains.agents.senders.feeding import is_fed
from wakeful.domains.agents.tables import AgentTables
from wakeful.domains.agents.work import item_text
from wakeful.kernel.model import run as model
from wakeful.triggers.active_hours import ActiveHours

if TYPE_CHECKING:
    from wakeful.kernel.model.explanations import Subject

SHOWN_EVENTS = 3
SHOWN_TEXT = 80
UNSENT = {
    "ok-ack": "the agent had nothing to report",
    "ok-empty": "the reply was empty",
    "silent": "deliver is none",
}


def story(subject: Subject) -> list[str]:
    """The sentences about a job or a run of an agent."""
    payload = effective_payload(subject.tx, json.loads(subject.job.payload))
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
    opens = opening_of(subject.tx, agent) if wake.by_interval else None
    until = (
        "" if opens is None else f" for the active hours of {agent}.{HEARTBEAT}, which begin at {subject.when(opens)}"
    )
    return [*found, f"A wake ({wake.reason}) waits{until}, asked for at {subject.when(wake.requested_at)}."]


def _hours(subject: Subject, payload: dict[str, Any]) -> list[str]:
    """When a heartbeat may wake its agent, and whether its next beat has to wait for that."""
    if subject.of_run or payload["does"] != "beat" or payload.get("active_hours") is None:
        return []
    hours = ActiveHours.read(payload["active_hours"])
    said = hours.to_data()
    zone = f", {said['timezone']}" if "timezone" in said else ""
    found = subject.tx.jobs.by_name(subject.job.name)
    beat = found[1].next_at if found is not None else None
    opens = beat_at(subject.job, beat, subject.tx.now)
    late = "" if opens == beat or opens is None else f", and the next beat waits until {subject.when(opens)}"
    limits = f"It wakes {payload['agent']} only between {said['start']} and {said['end']}{zone}"
    return [f"{limits}: what is due outside of these hours waits for them{late}."]


def _events(subject: Subject, payload: dict[str, Any]) -> list[str]:
    """What it is to hear, or heard."""
    tables = subject.tx.of(AgentTables)
    if subject.of_run:
        return _heard(subject, payload)
    if payload["does"] == "ask":
        return []
    waiting = tables.waiting(payload["agent"])
    if not waiting:
        return ["No system event waits."]
    verb = "waits" if len(waiting) == 1 else "wait"
    texts = "; ".join(f"[{event.source or 'event'}] {_short(event.text)}" for event in waiting[:SHOWN_EVENTS])
    more = ", …" if len(waiting) > SHOWN_EVENTS else ""
    return [f"{counted(len(waiting), 'system event')} {verb} for the next run: {texts}{more}."]


def _heard(subject: Subject, payload: dict[str, Any]) -> list[str]:
    run, output = subject.run, _output(subject)
    if run is None or payload["does"] != "wake":
        return []
    hops = hops_of(subject.tx, run.id)
    led = [f"{counted(hops, 'run')} of agents led to it."] if hops else []
    if run.outcome is None:
        bound = len(subject.tx.of(AgentTables).given_to(run.id))
        return [*led, f"It was given {counted(bound, 'system event')}."] if bound else led
    if output.get("events"):
        return [*led, f"It received {counted(output['events'], 'system event')}."]
    return led


def _fed(subject: Subject, _: dict[str, Any]) -> list[str]:
    """Whether it was given text from outside."""
    if subject.run is None or not subject.of_run or not is_fed(subject.tx, subject.run.id):
        return []
    return ["It, or a run that led to it, was given text from outside."]


def _session(subject: Subject, payload: dict[str, Any]) -> list[str]:
    """The session it continues in."""
    if payload.get("runner") is None:
        return []
    if subject.of_run:
        session = _output(subject).get("session")
        return [f"Its session was {session}."] if session else []
    policy = payload.get("session", "persistent")
    if policy == "ephemeral" or not _keeps_sessions(payload["runner"]):
        return ["Each run begins a session of its own."]
    name = session_name(subject.job.name, payload)
    kept = subject.tx.of(AgentTables).session(name)
    if kept is None:
        return ["No session is kept yet: the next run begins one."]
    return [f"It continues the session {kept.session} ({name}), used last at {subject.when(kept.used_at)}."]


def _limit(subject: Subject, payload: dict[str, Any]) -> list[str]:
    """The rate limit of its account."""
    account = limited_as(payload)
    limit = limit_of(subject.tx, account) if _may_start(subject) else None
    if limit is None:
        return []
    until = subject.when(limit.until)
    return [
        f"The account {account} is at its rate limit until {until}: {limit.why.rstrip('.')}.",
        f"If the limit is over, clear it: wakeful agent limits clear {account}",
    ]


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
    waiting = tables.ready_counts([payload["agent"]]).get(payload["agent"], 0)
    verb = "waits" if waiting == 1 else "wait"
    return [*found, f"{counted(waiting, 'work item')} {verb}." if waiting else "No work item waits."]


def _delivery(subject: Subject, _: dict[str, Any]) -> list[str]:
    """What became of the reply."""
    run, outcome = subject.run, _output(subject).get("outcome")
    if run is None or outcome is None:
        return []
    if outcome in UNSENT:
        return [f"Its reply was not sent: {UNSENT[outcome]}."]
    sent = [one for source in model.SOURCES.values() for one in source(subject.tx, [run.id]).get(run.id, [])]
    if not sent:
        return ["Its reply was not sent: there is no connector."]
    return [f"Its reply is {one['id']} to {one['connector'] or 'no connector yet'}: {_state(one)}." for one in sent]


def _budget(subject: Subject, payload: dict[str, Any]) -> list[str]:
    """What it and all agents used today, or what a run counts as."""
    if not _may_start(subject):
        return counted_as(subject.tx, subject.run.id) if subject.run is not None else []
    used = used_today(subject.tx, subject.job)
    _, until = over_budget(subject.tx, payload) if subject.of_run and used else (None, None)
    return used if until is None else [f"A budget is used up, and it waits until {subject.when(until)}.", *used]


def _request(subject: Subject, _: dict[str, Any]) -> list[str]:
    """What came in from outside that it works on."""
    return explained(subject.tx, subject.run) if subject.of_run and subject.run is not None else []


PARTS: tuple[Callable[[Subject, dict[str, Any]], list[str]], ...] = (
    _wake,
    _hours,
    _request,
    _events,
    _work,
    _fed,
    _session,
    _limit,
    _budget,
    _delivery,
)


def _may_start(subject: Subject) -> bool:
    """Whether it is about starts to come: of a job, or of a run that waits to start."""
    return not subject.of_run or (subject.run is not None and subject.run.status == "queued")


def _keeps_sessions(runner: dict[str, Any]) -> bool:
    """Whether the runner can continue in a session."""
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
