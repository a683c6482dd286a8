"""What a result says to a person: the output of a success, and of a failure enough to act on. Pure."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.counting import counted
from wakeful.domains.delivery.texts import cut, last_lines
from wakeful.triggers import trigger_from_data
from wakeful.triggers.moments import spoken
from wakeful.triggers.zones import place_named

if TYPE_CHECKING:
    from wakeful.store.records import JobDef, JobState

OUTPUT_MOST = 20_000
TAIL_LINES, TAIL_MOST = 20, 4_000
NOTE_MOST = 500


class FailureSubject(NamedTuple):
    """A job and where it stands, for a message about its failure."""

    job: str
    does: str | None  # what it does, in one line
    outcome: str
    error: str | None
    output: str  # as `output_text` has it
    errors: int = 0  # failures in a row
    since: int | None = None  # when the first of them was
    next_at: int | None = None
    disabled: bool = False
    run: str | None = None
    link: str | None = None
    notes: tuple[str, ...] = ()  # what its people wrote about it
    zone: str | None = None  # of its schedule; times are in it
    node: str | None = None  # where the run was: the machine to look at
    running: bool = False  # whether a further run has begun

    def when(self, ms: int) -> str:
        return spoken(ms, place_named(self.zone))


def output_text(kind: str, output: Any) -> str:
    """What a run said: what a command printed, an answer's body, a reply, else its value as JSON."""
    if isinstance(output, Mapping):
        for name in {"command": ("output",), "http": ("body",)}.get(kind, ("reply",)):
            if isinstance(output.get(name), str):
                return str(output[name])
        if output.get("truncated") is True and isinstance(output.get("beginning"), str):
            return str(output["beginning"])
    if output is None or kind == "agent":  # whose output without a reply is only what it was about
        return ""
    return output if isinstance(output, str) else json.dumps(output, indent=2, ensure_ascii=False)


def work_of(kind: str, payload: Any) -> str | None:
    """What a job does, in one line without its secrets; None where its kind says it all."""
    if not isinstance(payload, Mapping):
        return None
    if kind == "command" and isinstance(payload.get("argv"), list):
        return cut(shlex.join(map(str, payload["argv"])), 200)
    if kind == "http" and isinstance(payload.get("url"), str):
        return f"{payload.get('method', 'GET')} {_address(payload['url'])}"
    if kind == "agent" and isinstance(payload.get("agent"), str):
        return _asked(payload)
    if kind == "session" and isinstance(payload.get("prompt"), str):
        return cut(f"a session: {' '.join(payload['prompt'].split())}", 200)
    return kind


def _address(url: str) -> str:
    """An address without its query and password."""
    scheme, _, rest = url.partition("?")[0].partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"


def _asked(payload: Mapping[str, Any]) -> str:
    """Which agent is asked, through what, and for what."""
    runner = payload.get("runner")
    form = dict(runner) if isinstance(runner, Mapping) else {}
    start = form.get("start")
    through = form.get("preset") or form.get("python") or (start[0] if isinstance(start, list) and start else None)
    if through is None and isinstance(form.get("url"), str):
        through = _address(form["url"])
    agent = f"the agent {payload['agent']}" + (f" ({through})" if through else "")
    prompt = payload.get("prompt_file") or " ".join(str(payload.get("prompt") or "").split())
    return cut(f"{agent}: {prompt}" if prompt else agent, 200)


def subject_of(job: JobDef) -> str:
    """The job's name in titles; for the job that calls a woken agent, which nobody named, the agent's."""
    if job.kind == "agent":
        payload = json.loads(job.payload)
        if payload.get("does") == "wake":
            return str(payload["agent"])
    return job.name


def next_start_of(state: JobState) -> int | None:
    """When a job starts next: a further attempt that waits, or its next scheduled time."""
    times = [at for at in (state.due_at, state.next_at) if at is not None]
    return min(times, default=None)


def described(about: FailureSubject, job: JobDef, state: JobState) -> FailureSubject:
    """With the notes of the job, and its times in the zone of its schedule."""
    zone = trigger_from_data(json.loads(job.trigger)).own_zone
    return about._replace(notes=tuple(json.loads(state.notes)) if state.notes else (), zone=zone)


def success(job: str, output: str, run: str | None = None) -> tuple[str, str]:
    """Title and text of a good result."""
    more = f"wakeful logs {run}" if run is not None else ""
    return f"{job}: success", cut(output.strip(), OUTPUT_MOST, more) or f"{job} succeeded and printed nothing."


def failure(about: FailureSubject) -> tuple[str, str]:
    """Title and text of a failure: what, since when, why, what is next, where to look."""
    lines = [f"{about.job} failed ({about.outcome}).", *explained(about)]
    if about.run is not None:
        lines.append(f"Look closer: wakeful logs {about.run}")
    if about.link is not None:
        lines.append(about.link)
    return f"{about.job}: {about.outcome}", "\n".join(lines)


def explained(about: FailureSubject, said: str = "") -> list[str]:
    """What it does, since when it fails, why, what it said, and what happens next; not again what was `said`."""
    lines = []
    if about.does:
        lines.append(f"It runs: {about.does}")
    lines += [f"Note: {cut(note, NOTE_MOST)}" for note in about.notes]
    if about.node is not None:
        lines.append(f"It ran on {about.node}.")
    if about.errors > 1 and about.since is not None:
        times = f"{counted(about.errors, 'time')} in a row"
        lines.append(f"Failing since {about.when(about.since)}" + ("." if times in said else f", {times}."))
    if about.error and about.error not in said:
        lines.append(f"Error: {cut(about.error, TAIL_MOST)}")
    if about.output.strip():
        lines += ["", "Last lines of output:", last_lines(about.output, TAIL_LINES, TAIL_MOST), ""]
    return [*lines, _next(about)]


def _next(about: FailureSubject) -> str:
    if about.disabled:
        return f"Next: it is disabled and does not start again until wakeful resume {shlex.quote(about.job)}."
    if about.running:
        return "Next: a run of it is in progress."
    if about.next_at is not None:
        return f"Next: it starts again at {about.when(about.next_at)}."
    return "Next: it does not start again by itself."
