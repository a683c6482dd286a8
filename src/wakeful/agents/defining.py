"""From an agent's settings to its jobs as a file writes them: what each job does is in its payload. Pure.

An agent is its jobs: one for every schedule, one for the heartbeat, and `NAME.wake`, which runs it when it is woken and
holds what concerns the agent as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from wakeful.agents.naming import AGENT, HEARTBEAT, WAKE
from wakeful.agents.runners.spec import DEFAULT_TIMEOUT_MS, command_form, form_of, preset_of
from wakeful.callables import beside
from wakeful.errors import InvalidJob, InvalidSetting
from wakeful.references import absolute

DEFAULT_PROMPT = "Read HEARTBEAT.md and check if anything needs attention. Reply {token} if nothing to report."
ACK_TOKEN, ACK_MAX_CHARS = "HEARTBEAT_OK", 300
SESSIONS = ("persistent", "ephemeral")
RHYTHMS = ("cron", "interval", "every", "at")
LATER = "is not supported by this version yet: remove it, or use a later one."
GRACE_MS = 60_000  # how much later than the runner's own limit a run counts as stuck

Place = tuple[str | int, ...]


class Part(NamedTuple):
    """A job of an agent: its name, where in the settings it is, and what a file would write for it."""

    name: str
    where: Place
    written: dict[str, Any]


class Wrong(NamedTuple):
    """Something that is wrong with an agent, and where."""

    where: Place
    message: str


def jobs_of(name: str, agent: Mapping[str, Any], folder: Path) -> tuple[list[Part], list[Wrong]]:
    """The jobs of an agent, or what is wrong with its settings beside what a model can see."""
    wrong = [*_later(agent), *_runner_problems(agent["runner"])]
    runner = _settled_runner(agent["runner"], folder)
    heartbeat = agent.get("heartbeat") or {}
    common = _options(name, agent)
    parts = [_wake_part(name, agent, runner, common, folder)]
    if heartbeat.get("enabled", bool(heartbeat)):
        parts.append(_heartbeat_part(name, heartbeat))
    for key, schedule in (agent.get("schedules") or {}).items():
        where: Place = ("schedules", key)
        problems = [*_schedule_problems(schedule), *_work_problems(agent, schedule)]
        wrong += [Wrong((*where, *found.where), found.message) for found in problems]
        parts.append(_schedule_part(name, key, agent, schedule, (runner, common, folder)))
    return parts, wrong


# -- what is wrong ----------------------------------------------------------------------------------------------------


def _later(settings: Mapping[str, Any]) -> Iterator[Wrong]:
    for key in ("budget", "untrusted"):
        if settings.get(key) is not None:
            yield Wrong((key,), LATER)
    if settings.get("work") not in (None, "queue", {"source": "queue"}):
        yield Wrong(("work",), "takes {source: queue} in this version: other sources are not supported yet.")


def _runner_problems(runner: Mapping[str, Any]) -> Iterator[Wrong]:
    try:
        if form_of(runner) in ("preset", "start"):
            preset_of(runner)
            command_form(runner)
    except InvalidJob as error:
        yield Wrong(("runner",), f"cannot be used: {error}")


def _schedule_problems(schedule: Mapping[str, Any]) -> Iterator[Wrong]:
    for key in ("webhook", "chat"):
        if schedule.get(key) not in (None, False):
            yield Wrong((key,), LATER)
    kind = schedule.get("type")
    if kind in ("webhook", "chat"):
        yield Wrong(("type",), LATER)
    if kind == "cron" and not (schedule.get("expression") or schedule.get("cron")):
        yield Wrong(("type",), "cron needs expression, such as expression: 0 9 * * 1-5.")
    if kind == "interval" and schedule.get("interval") is None:
        yield Wrong(("type",), "interval needs interval, such as interval: 5m.")
    if schedule.get("prompt") is not None and schedule.get("prompt_file") is not None:
        yield Wrong(("prompt_file",), "is a second prompt: give prompt or prompt_file.")


def _work_problems(agent: Mapping[str, Any], schedule: Mapping[str, Any]) -> Iterator[Wrong]:
    if not schedule.get("work"):
        return
    if agent.get("work") is None:
        yield Wrong(("work",), "needs a source: add work: {source: queue} to the agent.")
    if (schedule.get("target") or agent.get("target", "isolated")) == "main":
        yield Wrong(("work",), "needs target: isolated in this version.")


# -- the jobs ---------------------------------------------------------------------------------------------------------


def _wake_part(
    name: str, agent: Mapping[str, Any], runner: dict[str, Any], common: dict[str, Any], folder: Path
) -> Part:
    heartbeat = agent.get("heartbeat") or {}
    ack = _ack(agent)
    payload = {
        "agent": name,
        "schedule": WAKE,
        "does": "wake",
        "runner": runner,
        "session": HEARTBEAT if _session(agent) != "ephemeral" else "ephemeral",
        "prompt": heartbeat.get("prompt") or DEFAULT_PROMPT.replace("{token}", ack["ack_token"]),
        "prompt_file": _path(heartbeat.get("prompt_file"), folder),
        **ack,
        "deliver": agent.get("deliver"),
        "description": agent.get("description"),
        "max_concurrent": agent.get("max_concurrent", 1),
    }
    written = {"manual": True, AGENT: _without_none(payload), **common, "retry": 0}
    return Part(f"{name}.{WAKE}", (), written)


def _heartbeat_part(name: str, heartbeat: Mapping[str, Any]) -> Part:
    hours = heartbeat.get("active_hours")
    payload = {"agent": name, "schedule": HEARTBEAT, "does": "beat", "active_hours": _without_none(hours or {}) or None}
    written = {"every": heartbeat.get("every", "30m"), "owner": name, AGENT: _without_none(payload)}
    return Part(f"{name}.{HEARTBEAT}", ("heartbeat",), written)


def _schedule_part(
    name: str,
    key: str,
    agent: Mapping[str, Any],
    schedule: Mapping[str, Any],
    given: tuple[dict[str, Any], dict[str, Any], Path],
) -> Part:
    runner, common, folder = given
    target = schedule.get("target") or agent.get("target", "isolated")
    payload = {"agent": name, "schedule": key, "prompt": schedule.get("prompt")}
    payload["prompt_file"] = _path(schedule.get("prompt_file"), folder)
    written = {word: schedule[word] for word in (*RHYTHMS, "timezone", "enabled") if schedule.get(word) is not None}
    written["owner"] = name
    if schedule.get("expression") is not None:
        written["cron"] = schedule["expression"]
    if target == "main":
        payload["does"] = "event"
    else:
        deliver = schedule.get("deliver") or agent.get("deliver")
        payload |= {"does": "ask", "runner": runner, "session": _session(agent), "deliver": deliver, **_ack(agent)}
        payload["work"] = True if schedule.get("work") else None
        written |= common
        written["retry"] = {"delays": ["30s", "2m"], "on": "transient"}
    return Part(f"{name}.{key}", ("schedules", key), {**written, AGENT: _without_none(payload)})


def _ack(agent: Mapping[str, Any]) -> dict[str, Any]:
    heartbeat = agent.get("heartbeat") or {}
    most = heartbeat.get("ack_max_chars")
    token = heartbeat.get("ack_token") or ACK_TOKEN
    return {"ack_token": token, "ack_max_chars": ACK_MAX_CHARS if most is None else most}


def _session(agent: Mapping[str, Any]) -> str:
    return str(agent.get("session") or "persistent")


def _options(name: str, agent: Mapping[str, Any]) -> dict[str, Any]:
    """What all jobs have that call the agent."""
    lanes = {f"agent:{name}": agent.get("max_concurrent", 1)}
    if (session := _session(agent)) not in SESSIONS:
        lanes[f"session:{session}"] = 1
    limit = (agent["runner"].get("timeout") or DEFAULT_TIMEOUT_MS) + GRACE_MS
    options = {"owner": name, "lanes": lanes, "timeout": limit / 1000, "on_crash": "resume", "error_span": "24h"}
    return {**options, "labels": list(agent["labels"])} if agent.get("labels") else options


def _settled_runner(runner: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The runner with paths as they are from anywhere, and references as they are written."""
    settled = {key: _absolute(value, folder) for key, value in runner.items() if value is not None}
    if "cwd" in settled:
        settled["cwd"] = _path(settled["cwd"], folder)
    if "python" in settled:
        settled["python"] = beside(settled["python"], folder)
    return settled


def _absolute(value: Any, folder: Path) -> Any:
    if isinstance(value, str):
        return absolute(value, folder)
    if isinstance(value, list):
        return [_absolute(item, folder) for item in value]
    return _without_none(value) if isinstance(value, dict) else value


def _path(text: str | None, folder: Path) -> str | None:
    if text is None or text.startswith("${"):
        return text
    try:
        return str(folder / Path(text).expanduser())
    except RuntimeError as error:
        raise InvalidSetting(f"{text!r} is no path: {error}.") from None


def _without_none(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if item is not None}
