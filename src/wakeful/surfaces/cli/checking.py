"""`check` and `schema`: is the configuration file right, and what may be in it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wakeful.console.failures import WrongUse, say_aside
from wakeful.console.humanize import count
from wakeful.console.opening import now_ms
from wakeful.console.output import say
from wakeful.console.store_location import nearest_config, place_beside
from wakeful.console.tables import Json, print_json
from wakeful.domains.agents.schedule_options import TRANSIENT
from wakeful.errors import SchedulerError
from wakeful.spelling import did_you_mean
from wakeful.surfaces.cli.app import SERVER, app
from wakeful.surfaces.cli.job_warnings import COMMAND, left_out, obstacles
from wakeful.triggers import After

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wakeful.config.loading import Loaded
    from wakeful.config.reading import Fault


File = Annotated[
    Path | None,
    typer.Argument(metavar="[FILE]", help="The file (default: the nearest wakeful.yaml upward).", show_default=False),
]


@app.command("check", rich_help_panel=SERVER)
def check(
    file: File = None,
    *,
    as_json: Json = False,
) -> None:
    """Validate a configuration file and report every mistake. Nothing is changed.

    A program, directory or file that is missing on this machine is a warning: it may exist on the server.
    """
    from wakeful.config.loading import load
    from wakeful.config.reading import ConfigError

    found = config_named(file, "check")
    store = _store_file(found)  # first: what it reads of the file is not read again
    try:
        loaded = load(found)
    except ConfigError as error:
        if as_json:
            print_json([_as_data(fault) for fault in error.faults])
        else:
            for fault in error.faults:
                say(f"{_place(fault)}: {fault.message}")
            say_aside(f"{found}: {count(len(error.faults), 'mistake')}")
        raise typer.Exit(1) from None
    for name, warning in _warnings(loaded):
        say_aside(f"{found}: warning: jobs.{name}: {warning}")
    for place, warning in _missing(loaded):
        say_aside(f"{found}: warning: {place}: {warning}")
    for name, warning in agent_warnings(loaded, store):
        say_aside(f"{found}: warning: agents.{name}.runner.cwd: {warning}")
    for place, warning in budget_notes(loaded, now_ms()):
        say_aside(f"{found}: warning: {place}: {warning}")
    if notifies_nobody(loaded):
        say_aside(f"{found}: note: nobody is notified of failures: add alerts: {{to: NAME}} and a connector.")
    if as_json:
        print_json([])
    else:
        say(f"{found}: valid")


def notifies_nobody(loaded: Loaded) -> bool:
    """Whether no failure of what the file defines would be sent to anybody."""
    from wakeful.domains.agents.naming import AGENT

    config, entries = loaded.config, loaded.jobs.entries
    if not entries or config.alerts.to is not None:  # type: ignore[attr-defined]  # of a domain
        return False
    asks = any(entry.new.kind == AGENT for entry in entries)
    if asks and config.connectors.root:  # type: ignore[attr-defined]  # as above
        return False
    return not any(entry.new.options.get("deliver") for entry in entries)


def _warnings(loaded: Loaded) -> Iterator[tuple[str, str]]:
    """What keeps a job from being started, on this machine or at all, by its name."""
    names = {entry.new.name for entry in loaded.jobs.entries}
    for entry in loaded.jobs.entries:
        if isinstance(entry.new.trigger, After) and (other := entry.new.trigger.job) not in names:
            hint = did_you_mean(other, names)
            yield entry.new.name, f"it starts after {other!r}, which is no job of this file.{hint}"
        if entry.new.kind == COMMAND:
            for sentence in obstacles(COMMAND, entry.new.payload, None):
                yield entry.new.name, sentence
        options = dict(entry.new.options)
        if options.get("retry") == TRANSIENT:
            del options["retry"]  # what agents have that say nothing
        yield from ((entry.new.name, f"it {note}.") for note in left_out(entry.new.trigger, options))


def _missing(loaded: Loaded) -> Iterator[tuple[str, str]]:
    """Programs and directories of agents, and files of workflows, that are not on this machine."""
    from wakeful.domains.agents.naming import AGENT
    from wakeful.surfaces.cli.agent_checks import missing_here

    payloads = [entry.new.payload for entry in loaded.jobs.entries if entry.new.kind == AGENT]
    runners = {payload["agent"]: payload["runner"] for payload in payloads if payload.get("runner")}
    for names, problem in missing_here(runners.items()):
        yield f"agent{'s' if ', ' in names else ''} {names}", problem
    for ref in loaded.config.workflows.listed().refs:  # type: ignore[attr-defined]  # of a domain
        if not ref.path.exists():
            yield "workflows", f"there is no file {ref.path} here"


def agent_warnings(loaded: Loaded, store: Path | None) -> Iterator[tuple[str, str]]:
    """Agents whose working directory holds what they should not change, by name."""
    from wakeful.domains.agents.naming import AGENT
    from wakeful.domains.agents.runners.spec import form_of

    prompts: dict[str, set[str]] = {}
    runners: dict[str, dict[str, Any]] = {}
    for entry in loaded.jobs.entries:
        if entry.new.kind == AGENT:
            payload = entry.new.payload
            prompts.setdefault(payload["agent"], set()).update(filter(None, [payload.get("prompt_file")]))
            runners |= {payload["agent"]: payload["runner"]} if payload.get("runner") else {}
    ours = [("the configuration", loaded.jobs.path), *(("the store", path) for path in [store] if path is not None)]
    for name, runner in runners.items():
        if form_of(runner) not in ("preset", "start") or "${" in runner.get("cwd", ""):
            continue
        folder = Path(runner.get("cwd", ".")).resolve()
        files = [*ours, *(("its prompt", Path(prompt)) for prompt in sorted(prompts[name]))]
        held = [f"{what} ({path.name})" for what, path in files if path.resolve().is_relative_to(folder)]
        if held:
            yield name, f"{folder} holds {' and '.join(held)}, which the agent can change: use another directory."


def budget_notes(loaded: Loaded, now: int) -> Iterator[tuple[str, str]]:
    """Budgets that the schedules of the file's agents exceed, or that do not apply: the place, and a sentence."""
    from wakeful.domains.agents.budgets.affording import Scheduled, too_much, uncounted
    from wakeful.domains.agents.budgets.rules import given_limits
    from wakeful.domains.agents.naming import AGENT

    limits = loaded.config.limits
    jobs = [
        Scheduled(entry.new.name, entry.new.payload, entry.new.trigger)
        for entry in loaded.jobs.entries
        if entry.new.kind == AGENT and entry.enabled
    ]
    yield from too_much(jobs, given_limits(**limits.of_agents(), zone=loaded.jobs.zone), now)
    if "cost_per_day" in limits.model_fields_set and limits.cost_per_day is not None:
        yield from uncounted(jobs)


def _store_file(file: Path) -> Path | None:
    try:
        return place_beside(file, None, os.environ, Path.cwd()).path
    except SchedulerError:  # serve says what is wrong with it
        return None


def config_named(file: Path | None, command: str) -> Path:
    """The file that was named, or the nearest one."""
    found = file if file is not None else nearest_config(Path.cwd())
    if found is None:
        raise WrongUse(f"There is no wakeful.yaml in {Path.cwd()} or above it: name a file, wakeful {command} FILE.")
    return found


def _place(fault: Fault) -> str:
    """FILE:LINE:COLUMN, as editors and build tools read it."""
    return fault.file if fault.line is None else f"{fault.file}:{fault.line}:{fault.column or 1}"


def _as_data(fault: Fault) -> dict[str, Any]:
    return {
        "file": fault.file,
        "line": fault.line,
        "column": fault.column,
        "path": fault.key,
        "message": fault.message,
    }


@app.command("schema", rich_help_panel=SERVER)
def schema() -> None:
    """Print the JSON Schema of wakeful.yaml, for editors."""
    from wakeful.config.loading import json_schema

    print_json(json_schema())
