"""`init`: a first configuration file, made from what is found on this machine."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Annotated

import typer

from wakeful.cli.app import SERVER, app
from wakeful.cli.place import CONFIG
from wakeful.cli.saying import say
from wakeful.cli.tables import Json, print_json
from wakeful.errors import AlreadyExists, InvalidSetting
from wakeful.triggers import system_zone

WORKSPACE = "workspace"

File = Annotated[
    Path | None, typer.Argument(metavar="[FILE]", help="The file to write (default: wakeful.yaml).", show_default=False)
]


@app.command("init", rich_help_panel=SERVER)
def init(file: File = None, *, as_json: Json = False) -> None:
    """Write a first wakeful.yaml for the agents found on this machine.

    It asks nothing, and a file that exists is left alone.
    """
    path = file if file is not None else Path(CONFIG)
    path = path / CONFIG if path.is_dir() else path
    programs, zone = found_programs(), system_zone()
    _write(path, configuration(programs, zone))
    if programs:
        (path.parent / WORKSPACE).mkdir(exist_ok=True)
    if as_json:
        print_json({"file": str(path), "agents": programs, "timezone": zone})
        return
    say(f"Wrote {path}.")
    if programs:
        say(f"  agent  assistant, asked by {programs[0]}")
    else:
        say("  agent  none was found on PATH: the file shows how one is written")
    say(f"  zone   {zone}")
    say(f"  next   wakeful check {path}, then wakeful serve --config {path}")


def found_programs() -> list[str]:
    """The presets whose program is on PATH here."""
    from wakeful.agents.runners.presets import OPTIONS, PRESETS

    return [name for name, preset in PRESETS.items() if preset.start[0] != OPTIONS and shutil.which(preset.start[0])]


def configuration(programs: list[str], zone: str) -> str:
    """The text of the file."""
    agent = _AGENT.replace("PRESET", programs[0] if programs else "claude").replace("OTHERS", _others(programs[1:]))
    if not programs:
        agent = "".join(f"# {line}\n" if line else "#\n" for line in agent.splitlines())
    return _FILE.replace("ZONE", zone).replace("AGENT\n", agent)


def _others(programs: list[str]) -> str:
    return f"  # found here, too: {', '.join(programs)}" if programs else ""


def _write(path: Path, text: str) -> None:
    """Only where nothing is: two who start at the same moment do not overwrite each other either."""
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        raise AlreadyExists(
            f"{path} exists already, and is left as it is: name another file, wakeful init FILE."
        ) from None
    except OSError as error:
        raise InvalidSetting(f"{path} cannot be written ({error.strerror}).") from None
    with os.fdopen(number, "w", encoding="utf-8") as file:
        file.write(text)


_FILE = """\
# What runs here, and when.
#   wakeful check    reports mistakes in this file
#   wakeful plan     shows what would change
#   wakeful serve    runs it, and takes over edits

store: sqlite:///wakeful.db

defaults:
  timezone: ZONE  # of times that name no zone

# Jobs run a command or send a request.
jobs:
  hello:
    every: 1h
    command: [echo, "Hello from Wakeful"]

# Agents receive a prompt and reply.
AGENT

# Where replies and alerts go.
# connectors:
#   disk: {type: file, path: replies.jsonl}
# alerts: {to: disk}
"""

_AGENT = """\
agents:
  assistant:
    runner:
      preset: PRESETOTHERS
      cwd: workspace  # the directory it works in; keep this file and the store out of it
    # heartbeat: {enabled: true, every: 30m}  # wakes it to look for what needs attention
    schedules:
      standup:
        cron: "0 9 * * 1-5"
        prompt: Summarise what has changed here since yesterday.
        enabled: false  # set it to true when you are ready
"""
