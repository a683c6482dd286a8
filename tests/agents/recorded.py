"""Recorded calls of agent programs: `recordings/PROGRAM-VERSION/CASE.txt`, cut down to what presets read.

A file has `# argv`, `# stdin` and `# exit` (with `, stopped` where the program did not end by itself), then what was
printed. `expected.toml` beside it has a row for each: what the preset makes of it.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import NamedTuple

from wakeful.domains.agents.runners.judging import CallTime, EndedCall, judge
from wakeful.domains.agents.runners.output import OutputReader
from wakeful.domains.agents.runners.presets import PRESETS
from wakeful.domains.agents.runners.turn import Answered

FOLDER = Path(__file__).parent / "recordings"
NOW = 1_794_830_400_000  # 2026-11-16T12:00:00Z, when they were made
OUTCOMES = {
    "Answered": "answered",
    "Limited": "limited",
    "Gone": "gone",
    "Overloaded": "overloaded",
    "CallFailed": "wrong",
}


class Recording(NamedTuple):
    """One call as it was recorded."""

    program: str
    version: str
    case: str
    argv: tuple[str, ...]
    code: int
    stopped: bool
    stdout: str
    stderr: str

    @property
    def resumed(self):
        """Whether it was to go on in a session."""
        options = {"--resume", "resume", "-r", "--cid", *(["-s"] if self.program == "opencode" else [])}
        return not options.isdisjoint(item.partition("=")[0] for item in self.argv)


def read(path):
    program, _, version = path.parent.name.rpartition("-")
    head, stdout, stderr = re.split(r"^--- std(?:out|err)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    fields = dict(re.findall(r"^# (\w+): (.*)$", head, re.MULTILINE))
    code, _, note = fields["exit"].partition(", ")
    argv = tuple(fields["argv"].split())
    return Recording(program, version, path.stem, argv, int(code), note == "stopped", stdout, stderr)


def recordings():
    return [read(path) for path in sorted(FOLDER.glob("*/*.txt"))]


def expected():
    """What is made of each, by program, version and case."""
    tables = {path.parent.name: tomllib.loads(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*/*.toml")}
    return {(*name.rsplit("-", 1), case): row for name, table in tables.items() for case, row in table.items()}


def made_of(recording, now=NOW):
    """What the preset makes of a call, as a row of the table: only what there is."""
    preset, sessions = PRESETS[recording.program], []
    reader = OutputReader(preset.output, sessions.append)
    reader.feed(recording.stdout.encode())
    printed = reader.finish(recording.stdout, recording.stderr)
    said = recording.stderr.strip().splitlines()
    error = f"exited with code {recording.code}{f': {said[-1]}' if said else ''}" if recording.code else None
    error = "stopped after its limit of 60 s" if recording.stopped else error
    call = EndedCall(
        recording.code, recording.stdout, recording.stderr, printed,
        is_text=preset.output.format == "text", resumed=recording.resumed, error=error,
        timed_out=recording.stopped,
    )  # fmt: skip
    ending = judge(call, preset.signs, CallTime(now))
    reply = getattr(ending, "reply", None)
    row = {
        "outcome": "timeout" if getattr(ending, "outcome", None) == "timeout" else OUTCOMES[type(ending).__name__],
        "why": getattr(ending, "why", None),
        "until": getattr(ending, "until", None),
        "reply": reply.text if reply is not None and type(ending) is Answered else None,
        "quota": getattr(ending, "is_quota", None) or None,
        "denied": list(printed.denied) or None,
        "version": printed.version,
        "session": sessions[-1] if sessions else None,
        "cost": reply and reply.cost,
        "tokens": [reply.tokens_in, reply.tokens_out] if reply and reply.tokens_in is not None else None,
    }
    return {key: value for key, value in row.items() if value is not None}
