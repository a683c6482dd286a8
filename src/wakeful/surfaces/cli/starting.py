"""`init`: a first configuration file, made from what is found on this machine."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Annotated

import typer

from wakeful.console.output import say
from wakeful.console.store_location import CONFIG
from wakeful.console.tables import Json, print_json
from wakeful.errors import AlreadyExists, InvalidSetting
from wakeful.surfaces.cli.app import SERVER, app
from wakeful.triggers import system_zone

WORKSPACE, STORE = "workspace", "wakeful.db"
MCP_ADD = {name: f"{name} mcp add" for name in ("claude", "codex", "gemini", "qwen")}
BEAT = "HEARTBEAT.md"  # what an agent reads when its heartbeat wakes it

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
    fleet = None if path.name == CONFIG else path.stem
    _write(path, configuration(programs, zone, fleet))
    if programs:
        _make_workspace(path.parent / WORKSPACE)
    if as_json:
        print_json({"file": str(path), "agents": programs, "timezone": zone})
        return
    say(f"Wrote {path}.")
    if programs:
        agent = "assistant" if fleet is None else f"{_slug(fleet)}-assistant"
        say(f"  agent  {agent}, asked by {programs[0]}")
    else:
        say("  agent  none was found on PATH: the file shows how one is written")
    say(f"  zone   {zone}")
    say(f"  next   wakeful check {path}, then wakeful serve --config {path}")
    if programs:
        store = "" if str(path) == CONFIG else f" --db {path.parent / STORE}"
        say(f"  try    wakeful agent wake {agent} --wait{store}, while it serves: the first heartbeat, at once")
        say(f'         wakeful agent ask {agent}{store} "What is in this directory?"')
        for line in _offers(programs, store):
            say(line)


def _offers(programs: list[str], store: str) -> list[str]:
    """How the tools that were found can use Wakeful themselves: each by its own command, where it has one."""
    lines = [f"{MCP_ADD[name]} wakeful -- wakeful{store} mcp" for name in programs if name in MCP_ADD]
    lines.append("wakeful skill, which teaches them the command line")
    return [f"  tools  {lines[0]}", *(f"         {line}" for line in lines[1:])]


def _make_workspace(folder: Path) -> None:
    """The directory in which the agent works, with something to see at its first heartbeat."""
    folder.mkdir(exist_ok=True)
    if not (folder / BEAT).exists():
        (folder / BEAT).write_text("# What to look at\n\n- What is in this directory? Say it in one sentence.\n")


def found_programs() -> list[str]:
    """The presets whose program is on PATH here, and that need nothing else."""
    from wakeful.domains.agents.runners.presets import OPTIONS, PRESETS

    known = {name: preset.start[0] for name, preset in PRESETS.items() if not preset.needs_model}
    return [name for name, program in known.items() if program != OPTIONS and shutil.which(program)]


def configuration(programs: list[str], zone: str, fleet: str | None = None) -> str:
    """The text of the file; `fleet`: the name of one that is not the only one in its folder."""
    agent = _AGENT.replace("PRESET", programs[0] if programs else "claude").replace("OTHERS", _others(programs[1:]))
    if not programs:
        agent = "".join(f"# {line}\n" if line else "#\n" for line in agent.splitlines())
    text = _FILE.replace("STORE", STORE).replace("ZONE", zone).replace("AGENT\n", agent)
    if fleet is None:
        return text.replace("FLEET", "# fleet: main")
    prefix = _slug(fleet)
    named = text.replace("  hello:\n", f"  {prefix}-hello:\n").replace("  assistant:\n", f"  {prefix}-assistant:\n")
    return named.replace("FLEET", f"fleet: {prefix}")


def _slug(text: str) -> str:
    """As much of a file's name as a name of a job and an agent may have."""
    return re.sub("[^a-z0-9_-]+", "-", text.lower()).strip("-_")[:40] or "second"


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

store: sqlite:///STORE
FLEET  # whose jobs these are: each file on the store needs a name of its own

defaults:
  timezone: ZONE  # of times that name no zone

# Jobs run a command or send a request.
jobs:
  hello:
    every: 1h
    command: [echo, "Hello from Wakeful"]

# Agents receive a prompt and reply.
AGENT

# Where replies go: to the terminal of wakeful serve, until you replace it with a connector of your own, such as
#   phone: {url: "${PHONE_URL}"}  # any Apprise URL
connectors:
  terminal: {type: log}
# alerts: {to: phone}  # who is told when something fails
"""

_AGENT = """\
agents:
  assistant:
    runner:
      preset: PRESETOTHERS
      cwd: workspace  # the directory it works in; keep this file and the store out of it
    # mcp: true  # its program may schedule prompts for itself, which you approve (wakeful approvals)
    # heartbeat: {enabled: true, every: 30m}  # wakes it to read HEARTBEAT.md in its workspace
    schedules:
      standup:
        cron: "0 9 * * 1-5"
        prompt: Summarise what has changed here since yesterday.
        enabled: false  # set it to true when you are ready
"""
