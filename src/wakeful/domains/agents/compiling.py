"""From an agent's settings to its jobs as a file writes them: what each job does is in its payload. Pure.

An agent is its jobs: one for every schedule, one for the heartbeat, and `NAME.wake`, which runs it when it is woken and
holds what concerns the agent as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from wakeful.callables import beside
from wakeful.domains.agents.budgets.affording import budget_problems
from wakeful.domains.agents.inbound.sections import OUTSIDE, RUNNER_LIMITS, problems_of, settled_section
from wakeful.domains.agents.naming import AGENT, HEARTBEAT, RULE, WAKE, check_name
from wakeful.domains.agents.runners.presets import PRESETS
from wakeful.domains.agents.runners.spec import (
    DEFAULT_TIMEOUT_MS,
    account_lane,
    account_of,
    command_form,
    form_of,
    preset_of,
)
from wakeful.domains.agents.schedule_options import GRACE_MS, asking_options, keys_of_job, limit_ms
from wakeful.errors import InvalidJob, InvalidSetting, InvalidTrigger
from wakeful.references import absolute
from wakeful.triggers.active_hours import ActiveHours
from wakeful.triggers.fields import BY_WORD

DEFAULT_PROMPT = "Read HEARTBEAT.md and check if anything needs attention. Reply {token} if nothing to report."
ACK_TOKEN, ACK_MAX_CHARS = "HEARTBEAT_OK", 300
SCRIPTED = "scripted"  # a program that is not known
SESSIONS = ("persistent", "ephemeral")
RHYTHMS = tuple(word for word in BY_WORD if word not in OUTSIDE)
SOURCES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "directory": (("path",), ("trust",)),
    "github": (("repo",), ("label", "token", "base_url", "close")),
}
"""What each source of work needs, and what else it takes."""
OF_THE_CALL = ("model", "env")
"""Keys of a runner that a schedule may give for its own calls."""
EXAMPLES = {"path": "path: inbox", "repo": "repo: owner/name"}

Place = tuple[str | int, ...]


class AgentJobSpec(NamedTuple):
    """A job of an agent: its name, where in the settings it is, and what a file would write for it."""

    name: str
    where: Place
    written: dict[str, Any]


class AgentProblem(NamedTuple):
    """Something that is wrong with an agent, and where."""

    where: Place
    message: str


def jobs_of(
    name: str, agent: Mapping[str, Any], folder: Path, zone: str
) -> tuple[list[AgentJobSpec], list[AgentProblem]]:
    """The jobs of an agent, or what is wrong with its settings besides what a model can see.

    `zone`: that of hours that name none.
    """
    wrong = [*_source_problems(agent.get("work")), *_runner_problems(agent["runner"])]
    wrong += [*_budget_problems(agent), *_untrusted_problems(agent), *_mcp_problems(agent)]
    heartbeat = agent.get("heartbeat") or {}
    of_hours = list(_hours_problems(heartbeat))
    wrong += [*_session_problems(agent), *of_hours]
    runner = _settled_runner(agent["runner"], folder)
    runner = {**runner, "mcp": True} if agent.get("mcp") else runner
    common = _options(name, agent)
    parts = [_wake_part(name, agent, runner, common, folder)]
    if heartbeat.get("enabled", bool(heartbeat)) and not of_hours:
        parts.append(_heartbeat_part(name, heartbeat, zone))
    for key, given in (agent.get("schedules") or {}).items():
        schedule = {"chat": {}, **given} if given.get("type") == "chat" else given  # of any connector
        where: Place = ("schedules", key)
        problems = [
            *_schedule_problems(schedule),
            *_outside_problems(schedule),
            *_work_problems(agent, schedule),
            *_main_problems(agent, schedule),
            *_call_problems(agent["runner"], schedule),
        ]
        wrong += [AgentProblem((*where, *found.where), found.message) for found in problems]
        parts.append(_schedule_part(name, key, agent, schedule, (runner, common, folder)))
    return parts, wrong


# -- what is wrong ----------------------------------------------------------------------------------------------------


def _source_problems(work: Any) -> Iterator[AgentProblem]:
    given = work if isinstance(work, Mapping) else {"source": work}
    needed = SOURCES.get(str(given.get("source")), ((), ()))
    for key in needed[0]:
        if given.get(key) is None:
            yield AgentProblem(("work", key), f"is missing: a {given['source']} needs it, such as {EXAMPLES[key]}.")
    for key in given:
        if key != "source" and given[key] is not None and key not in (*needed[0], *needed[1]):
            yield AgentProblem(("work", key), f"is not for the source {given['source']}: remove it.")


def _runner_problems(runner: Mapping[str, Any]) -> Iterator[AgentProblem]:
    where: Place = ("runner",)
    try:
        if form_of(runner) in ("preset", "start"):
            where = ("runner", "preset")
            preset_of(runner)
            where = ("runner",)
            command_form(runner)
    except InvalidJob as error:
        yield AgentProblem(where, f"cannot be used: {error}")
    if isinstance(runner.get("account"), Mapping) and account_of(runner) is None:
        message = "is missing: max_concurrent counts the runs of an account, such as name: work."
        yield AgentProblem(("runner", "account", "name"), message)
    url = runner.get("url")
    if url is not None and not url.startswith(("http://", "https://", "${")):
        yield AgentProblem(("runner", "url"), "must begin with http:// or https://.")


def _session_problems(agent: Mapping[str, Any]) -> Iterator[AgentProblem]:
    try:
        check_name(_session(agent))
    except InvalidJob:
        yield AgentProblem(("session",), f"must be persistent, ephemeral, or a name that {RULE}.")


def _hours_problems(heartbeat: Mapping[str, Any]) -> Iterator[AgentProblem]:
    try:
        _hours(heartbeat)
    except InvalidTrigger as error:
        yield AgentProblem(("heartbeat", "active_hours"), f"cannot be used: {error}")


def _budget_problems(agent: Mapping[str, Any]) -> Iterator[AgentProblem]:
    usable = not list(_runner_problems(agent["runner"]))
    yield from (AgentProblem(*found) for found in budget_problems(agent, usable=usable))


def _mcp_problems(agent: Mapping[str, Any]) -> Iterator[AgentProblem]:
    """Only a program can be told of an MCP server, and only one that takes it for a single run."""
    if not agent.get("mcp"):
        return
    runner = agent["runner"]
    preset = PRESETS.get(runner.get("preset") or "")
    if runner.get("url") is not None or runner.get("python") is not None:
        yield AgentProblem(("mcp",), "is for programs: a session server and a function have no MCP configuration.")
    elif preset is not None and preset.mcp is None and runner["preset"] != SCRIPTED:
        yield AgentProblem(("mcp",), f"cannot be used: the preset {runner['preset']} takes no MCP server for one run.")


def _untrusted_problems(agent: Mapping[str, Any]) -> Iterator[AgentProblem]:
    """What holds for runs that others feed must be something that the runner can do."""
    untrusted, runner = agent.get("untrusted") or {}, agent["runner"]
    given = {key: untrusted[key] for key in RUNNER_LIMITS if untrusted.get(key) is not None}
    preset = PRESETS.get(runner.get("preset") or "")
    if "tools" in given and (preset is None or preset.tools is None):
        what = f"The preset {runner['preset']}" if runner.get("preset") else "This runner"
        yield AgentProblem(("untrusted", "tools"), f"cannot be enforced: {what} cannot limit the tools of a run.")
    elif given and not list(_runner_problems(runner)):
        problems = _runner_problems({**runner, **given})
        yield from (AgentProblem(("untrusted",), problem.message) for problem in problems)


def _outside_problems(schedule: Mapping[str, Any]) -> Iterator[AgentProblem]:
    """What is wrong with a schedule that others start."""
    given = [key for key in sorted(OUTSIDE) if schedule.get(key) is not None]
    if schedule.get("type") == "webhook" and "webhook" not in given:
        yield AgentProblem(("type",), "webhook needs a secret: add webhook: {verify: github, secret: ${SECRET}}.")
    if not given:
        return
    others = [key for key in (*given[1:], *RHYTHMS, "expression") if schedule.get(key) is not None]
    if others:
        yield AgentProblem((others[0],), f"is a second schedule besides {given[0]}: give one of them.")
    if schedule.get("target") == "main":
        yield AgentProblem(("target",), "must be isolated: what others write stays out of the main session.")
    if schedule.get("work"):
        yield AgentProblem(("work",), f"cannot be combined with {given[0]}: what came in is what is worked on.")
    yield from (AgentProblem((given[0], *found.where), found.message) for found in problems_of(schedule))


def _schedule_problems(schedule: Mapping[str, Any]) -> Iterator[AgentProblem]:
    kind = schedule.get("type")
    if kind == "cron" and not (schedule.get("expression") or schedule.get("cron")):
        yield AgentProblem(("type",), "cron needs expression, such as expression: 0 9 * * 1-5.")
    if kind == "interval" and schedule.get("interval") is None:
        yield AgentProblem(("type",), "interval needs interval, such as interval: 5m.")
    if schedule.get("prompt") is not None and schedule.get("prompt_file") is not None:
        yield AgentProblem(("prompt_file",), "is a second prompt: give prompt or prompt_file.")


def _main_problems(agent: Mapping[str, Any], schedule: Mapping[str, Any]) -> Iterator[AgentProblem]:
    if (schedule.get("target") or agent.get("target")) != "main":
        return
    for key in ("hooks", *OF_THE_CALL):
        if schedule.get(key) is not None:
            yield AgentProblem((key,), "goes to the agent: a schedule with target: main only leaves it an event.")


def _call_problems(runner: Mapping[str, Any], schedule: Mapping[str, Any]) -> Iterator[AgentProblem]:
    """What a schedule says about its own calls must be something that the runner can do."""
    own = _of_the_call(schedule)
    if not own or list(_runner_problems(runner)):
        return
    if runner.get("url") is not None or runner.get("python") is not None:
        yield from (AgentProblem((key,), "is for programs: a session server and a function take none.") for key in own)
        return
    yield from (AgentProblem(("model",), problem.message) for problem in _runner_problems({**runner, **own}))


def _of_the_call(schedule: Mapping[str, Any]) -> dict[str, Any]:
    return {key: schedule[key] for key in OF_THE_CALL if schedule.get(key) is not None}


def _work_problems(agent: Mapping[str, Any], schedule: Mapping[str, Any]) -> Iterator[AgentProblem]:
    if not schedule.get("work") or not OUTSIDE.isdisjoint(schedule):
        return
    if agent.get("work") is None:
        yield AgentProblem(("work",), "needs a source: add work: {source: queue} to the agent.")


# -- the jobs ---------------------------------------------------------------------------------------------------------


def _wake_part(
    name: str, agent: Mapping[str, Any], runner: dict[str, Any], common: dict[str, Any], folder: Path
) -> AgentJobSpec:
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
        "schedule_session": None if _session(agent) == "persistent" else _session(agent),
        **_work_of_main(agent, folder),
        "budget": agent.get("budget"),
        "untrusted": agent.get("untrusted"),
        "self_schedule": None if agent.get("self_schedule") == "ask" else agent.get("self_schedule"),
    }
    written = {"manual": True, AGENT: _without_none(payload), **common, **_hooks(agent), "retry": 0}
    return AgentJobSpec(f"{name}.{WAKE}", (), written)


def _heartbeat_part(name: str, heartbeat: Mapping[str, Any], zone: str) -> AgentJobSpec:
    hours = _hours(heartbeat)
    settled = None if hours is None else hours.resolved(zone).to_data()
    payload = {"agent": name, "schedule": HEARTBEAT, "does": "beat", "active_hours": settled}
    written = {"every": heartbeat.get("every", "30m"), **_own(name), AGENT: _without_none(payload)}
    return AgentJobSpec(f"{name}.{HEARTBEAT}", ("heartbeat",), written)


def _schedule_part(
    name: str,
    key: str,
    agent: Mapping[str, Any],
    schedule: Mapping[str, Any],
    given: tuple[dict[str, Any], dict[str, Any], Path],
) -> AgentJobSpec:
    runner, common, folder = given
    outside = next((word for word in sorted(OUTSIDE) if schedule.get(word) is not None), None)
    target = "isolated" if outside else schedule.get("target") or agent.get("target", "isolated")
    payload = {"agent": name, "schedule": key, "prompt": schedule.get("prompt")}
    payload["prompt_file"] = _path(schedule.get("prompt_file"), folder)
    own = keys_of_job(schedule)
    written = {**_own(name), **own}
    if schedule.get("expression") is not None:
        written["cron"] = schedule["expression"]
    payload["work"] = _work(agent, folder) if schedule.get("work") else None
    if target == "main":
        payload["does"] = "event"
    else:
        # A chat message is answered where it came from, unless the schedule itself says otherwise.
        deliver = schedule.get("deliver") or (None if outside == "chat" else agent.get("deliver"))
        payload |= {
            "does": "ask",
            "runner": _with_own_call(runner, schedule),
            "session": _session(agent),
            "deliver": deliver,
        }
        payload["budget"] = agent.get("budget")
        payload["untrusted"] = agent.get("untrusted")
        if outside is not None:
            payload[outside] = settled_section(schedule[outside], folder)
        payload["timeout"] = limit_ms(own)
        written |= asking_options({**common, **_hooks(agent)}, {**own, **_hooks(schedule)})
        written = {word: value for word, value in written.items() if outside is None or word not in RHYTHMS}
        if outside is not None:
            written[outside] = True  # nothing starts it by time
    return AgentJobSpec(f"{name}.{key}", ("schedules", key), {**written, AGENT: _without_none(payload)})


def _with_own_call(runner: dict[str, Any], schedule: Mapping[str, Any]) -> dict[str, Any]:
    """The runner as a schedule has it: with another model, and with variables besides those of the agent."""
    own = _of_the_call(schedule)
    if "env" in own:
        own["env"] = [*runner.get("env", ()), *own["env"]]
    return {**runner, **own}


def _hours(heartbeat: Mapping[str, Any]) -> ActiveHours | None:
    hours = heartbeat.get("active_hours")
    return None if hours is None else ActiveHours.read(_without_none(hours))


def _work(agent: Mapping[str, Any], folder: Path) -> Any:
    """Where a schedule's items come from; True for the queue."""
    work = agent.get("work")
    if not isinstance(work, Mapping) or work.get("source") == "queue":
        return True
    spec = _absolute(dict(work), folder)
    return {**spec, "path": _path(spec["path"], folder)} if spec.get("path") is not None else spec


def _work_of_main(agent: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """What the woken agent needs to take an item: from where, and for the events of which schedules."""
    keys = [
        key
        for key, schedule in (agent.get("schedules") or {}).items()
        if schedule.get("work") and (schedule.get("target") or agent.get("target", "isolated")) == "main"
    ]
    return {"work": _work(agent, folder), "work_keys": keys} if keys else {}


def _ack(agent: Mapping[str, Any]) -> dict[str, Any]:
    heartbeat = agent.get("heartbeat") or {}
    most = heartbeat.get("ack_max_chars")
    token = heartbeat.get("ack_token") or ACK_TOKEN
    ack = {"ack_token": token, "ack_max_chars": ACK_MAX_CHARS if most is None else most}
    return {**ack, "ack_anywhere": True} if heartbeat.get("ack_anywhere") else ack


def _session(agent: Mapping[str, Any]) -> str:
    return str(agent.get("session") or "persistent")


def _hooks(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What is sent after a run, as a job's option says it."""
    return {} if settings.get("hooks") is None else {"deliver": settings["hooks"]}


def _own(name: str) -> dict[str, Any]:
    """What all jobs of an agent have: errors disable them after a day of trouble, not before."""
    return {"owner": name, "error_span": "24h"}


def _options(name: str, agent: Mapping[str, Any]) -> dict[str, Any]:
    """What all jobs have that call the agent."""
    lanes = {f"agent:{name}": agent.get("max_concurrent", 1), **account_lane(agent["runner"])}
    if (session := _session(agent)) not in SESSIONS:
        lanes[f"session:{session}"] = 1
    limit = (agent["runner"].get("timeout") or DEFAULT_TIMEOUT_MS) + GRACE_MS
    options = {**_own(name), "lanes": lanes, "timeout": limit / 1000, "on_crash": "resume"}
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
