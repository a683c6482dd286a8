"""A store as plain files: what is in `state.json`, written and read. Pure.

A job is its definition as users write it and its state, times as ISO 8601. Values that may be secrets are references.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from wakeful import ids
from wakeful.child_processes import is_ordinary
from wakeful.errors import SchedulerError
from wakeful.kernel.rules.options import as_written, from_text
from wakeful.kernel.rules.policy import trigger_of
from wakeful.moving.sources import Unreadable
from wakeful.references import REFERENCE, map_texts
from wakeful.store.records import JobDef, JobState
from wakeful.triggers import iso
from wakeful.triggers.moments import read_moment

FORMAT = 1
STATE, CONFIG, RUNS, EVENTS = "state.json", "wakeful.yaml", "runs.ndjson", "events.ndjson"
TIMES = (
    "next_at", "slot", "last_slot", "last_run_at", "last_finished_at", "backoff_until", "failing_since", "ended_at",
    "counted_to",
)  # fmt: skip
FLAGS = ("enabled", "paused")
PLAIN = ("revision", "last_outcome", "last_error", "errors", "crashes", "missed", "slot_runs", "notes")
HIDDEN = "***"  # what kinds show in place of a secret
_WORD = re.compile(r"[^A-Za-z0-9]+")
_REFERENCE = re.compile(r"\$\{(\w+)")


def escaped(text: str) -> str:
    """A text in which nothing is looked up: `${` as it is written in a file."""
    return REFERENCE.sub(lambda match: f"${match[0]}", text)


class Owner(NamedTuple):
    """The file that a job belongs to, and what it last said about it."""

    fleet: str
    enabled: bool
    notes: str | None


class ExportedJob(NamedTuple):
    """A job as an export has it."""

    job: JobDef
    state: JobState
    owner: Owner | None
    waits: bool = False  # it ran, or waited for a lane or a start that was asked for


# -- writing ----------------------------------------------------------------------------------------------------------


class Secrets:
    """Replaces what a kind hides by references, each by one of its own, and remembers their names."""

    def __init__(self, redact: Mapping[str, Callable[[Any], Any]], payloads: Iterable[str]) -> None:
        """`payloads`: of all jobs; a variable that one of them refers to already is not given a second meaning."""
        self._redact = redact
        self._taken = {name for payload in payloads for name in _REFERENCE.findall(payload)}
        self.names: list[str] = []

    def without(self, job: JobDef) -> Any:
        """The payload of a job, without secrets."""
        payload = json.loads(job.payload)
        redact = self._redact.get(job.kind)
        if redact is None:
            return payload
        if isinstance(payload, dict) and isinstance(payload.get("env"), dict):  # of a command, where both are kept
            known = payload.get("env_refs") or {}
            plain = {name: value for name, value in payload["env"].items() if is_ordinary(name)}
            moved = {name: self._reference(job.name, name) for name in payload["env"] if name not in plain}
            rest = {key: value for key, value in payload.items() if key != "env"}
            return rest | ({"env": plain} if plain else {}) | ({"env_refs": known | moved} if moved else {})
        if isinstance(payload, dict) and isinstance(payload.get("url"), str) and job.kind == "http":
            return self._request(job.name, payload, redact(payload))
        return self._compared(job.name, payload, redact(payload), "value")

    def _request(self, job: str, payload: dict[str, Any], shown: dict[str, Any]) -> dict[str, Any]:
        """A request whose hidden parts are references. All of its texts are filled in then, so others are escaped."""
        if payload == shown or payload.get("references") is True:
            return payload
        plain: dict[str, Any] = {
            key: map_texts(payload[key], escaped) for key in ("url", "headers", "body") if key in payload
        }
        hidden = map_texts({key: shown[key] for key in plain}, escaped)
        if plain["url"] != hidden["url"]:
            plain["url"] = hidden["url"].replace(HIDDEN, self._reference(job, "url"), 1)
            while HIDDEN in plain["url"]:
                plain["url"] = plain["url"].replace(HIDDEN, self._reference(job, "url"), 1)
        if "headers" in plain:
            plain["headers"] = self._compared(job, plain["headers"], hidden["headers"], "header")
        return {**payload, **plain, "references": True}

    def _compared(self, job: str, value: Any, shown: Any, name: str) -> Any:
        if value == shown or (isinstance(value, str) and "${" in value):
            return value
        if isinstance(value, dict) and isinstance(shown, dict):
            return {key: self._compared(job, one, shown.get(key), str(key)) for key, one in value.items()}
        if isinstance(value, list) and isinstance(shown, list) and len(value) == len(shown):
            return [self._compared(job, *pair, name) for pair in zip(value, shown, strict=True)]
        if isinstance(value, list):  # hidden as one: what refers to a variable continues to
            return [self._compared(job, one, shown, name) for one in value]
        variable, sign, _ = value.partition("=") if isinstance(value, str) and str(shown).count("=") else ("", "", "")
        if sign and str(shown).startswith(f"{variable}="):
            return f"{variable}={self._reference(job, variable)}"
        return self._reference(job, name)

    def _reference(self, job: str, name: str) -> str:
        variable = _WORD.sub("_", f"{job}_{name}").strip("_").upper()
        wanted = variable if variable[:1].isalpha() else f"JOB_{variable}"
        numbered = (f"{wanted}_{number}" for number in itertools.count(2))
        free = next(one for one in itertools.chain([wanted], numbered) if one not in self._taken)
        self._taken.add(free)
        self.names.append(free)
        return f"${{{free}}}"


def written(job: JobDef, state: JobState, owner: Owner | None, payload: Any) -> dict[str, Any]:
    """A job as it is written into `state.json`."""
    return {
        "id": ids.job_text(job.id),
        "name": job.name,
        "kind": job.kind,
        "owner": job.owner,
        "source": job.source,
        "fleet": None if owner is None else owner._asdict(),
        "trigger": trigger_of(job.trigger).to_data(),
        "payload": payload,
        "options": as_written(from_text(job.options)),
        "created_at": iso(job.created_at),
        "updated_at": iso(job.updated_at),
        "state": _state(state),
    }


def _state(state: JobState) -> dict[str, Any]:
    said: dict[str, Any] = {name: bool(getattr(state, name)) for name in FLAGS}
    said |= {name: None if getattr(state, name) is None else iso(getattr(state, name)) for name in TIMES}
    said |= {name: getattr(state, name) for name in PLAIN}
    said["waits"] = state.run_id is not None or state.parked is not None or state.queued > 0
    return said


# -- reading ----------------------------------------------------------------------------------------------------------


def check_format(data: Any) -> list[dict[str, Any]]:
    """The jobs of a `state.json`."""
    if not isinstance(data, dict) or not isinstance(data.get("jobs"), list):
        raise Unreadable(f"{STATE} is not that of an export.")
    if data.get("format") != FORMAT:
        raise Unreadable(
            f"{STATE} has the format {data.get('format')!r:.20}, and this version reads {FORMAT}: import it "
            "with the version that wrote it."
        )
    if not all(isinstance(job, dict) for job in data["jobs"]):
        raise Unreadable(f"{STATE} is not that of an export.")
    return list(data["jobs"])


def read_state(job_id: int, data: Mapping[str, Any], priority: int) -> JobState:
    """The state of a job; Unreadable where it is not as it was written."""
    try:
        times: dict[str, Any] = {
            name: None if data.get(name) is None else read_moment(data[name], name) for name in TIMES
        }
    except SchedulerError as error:
        raise Unreadable(f"{STATE}: {error}") from None
    flags: dict[str, Any] = {name: int(data.get(name) is True) for name in FLAGS}
    plain: dict[str, Any] = {name: data.get(name) for name in PLAIN}
    numbers = ("revision", "errors", "crashes", "missed", "slot_runs")
    texts = ("last_outcome", "last_error", "notes")
    right = all(type(plain[name]) is int and 0 <= plain[name] < 2**53 for name in numbers)
    right = right and all(plain[name] is None or isinstance(plain[name], str) for name in texts)
    if not right:
        raise Unreadable(f"{STATE}: the state of a job is not as it was written.")
    counted_to = times.pop("counted_to") or 0
    new = JobState.new(job_id, priority=priority, counted_to=counted_to)
    return new._replace(**flags, **times, **plain)
