"""What keeps an agent from running on this machine: a program that is missing, or one that is logged out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from wakeful.child_processes import TookTooLong, run_to_end
from wakeful.domains.agents.runners.calling import environment, looked_up
from wakeful.domains.agents.runners.presets.preset import Preset
from wakeful.domains.agents.runners.spec import command_form, form_of, preset_of
from wakeful.domains.command.launch import obstacles
from wakeful.domains.command.spec import CommandSpec
from wakeful.errors import SchedulerError

PATIENCE_S = 10


def agent_problems(agents: Iterable[tuple[str, Mapping[str, Any]]]) -> list[tuple[str, str, str]]:
    """Names, problem and remedy of agents that cannot run; those with the same problem are named together."""
    return _together(_problems(agents))


def missing_here(agents: Iterable[tuple[str, Mapping[str, Any]]]) -> list[tuple[str, str]]:
    """Names and problem of agents whose program or directory is not on this machine, as far as a file tells."""
    known = [(name, runner) for name, runner in agents if "${" not in str(runner)]
    found = [
        (name, text[0].lower() + text[1:].rstrip("."), "") for name, runner in known for text in _cannot_start(runner)
    ]
    return [(names, problem) for names, problem, _ in _together(found)]


def _together(found: Iterable[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    together = dict[str, tuple[list[str], str]]()
    for name, problem, remedy in found:
        together.setdefault(problem, ([], remedy))[0].append(name)
    return [(", ".join(names), problem, remedy) for problem, (names, remedy) in together.items()]


def _problems(agents: Iterable[tuple[str, Mapping[str, Any]]]) -> list[tuple[str, str, str]]:
    """The same for each agent; each tool's login is checked once."""
    found, logged_out = [], dict[tuple[str, ...], bool]()
    for name, runner in agents:
        remedy = f"change agents.{name}.runner in wakeful.yaml"
        try:
            problems = _cannot_start(runner)
        except SchedulerError as error:
            problems = [str(error)]
        if problems:
            found += [(name, text[0].lower() + text[1:].rstrip("."), f"install it, or {remedy}") for text in problems]
            continue
        preset = preset_of(runner)
        if preset is None or preset.logged_in is None or _has_key(preset, runner):
            continue
        if preset.logged_in not in logged_out:
            logged_out[preset.logged_in] = _is_logged_out(preset.logged_in, runner)
        if logged_out[preset.logged_in]:
            program, keys = preset.logged_in[0], ", ".join(_keys(preset))
            text = f"{program} is not logged in (checked with {' '.join(preset.logged_in)})"
            found.append((name, text, f"log in with {program}, or set one of {keys} in env_file"))
    return found


def _cannot_start(runner: Mapping[str, Any]) -> list[str]:
    if form_of(runner) not in ("preset", "start"):
        return []
    filled, _ = looked_up(runner)
    form = command_form(filled)
    return obstacles(CommandSpec(form.start, cwd=form.cwd), None)


def _has_key(preset: Preset, runner: Mapping[str, Any]) -> bool:
    """Whether the tool is given a key, and works without a login."""
    own = any(item.partition("=")[0].endswith(("_KEY", "_TOKEN")) for item in runner.get("env", ()))
    return own or any(os.environ.get(name) for name in _keys(preset))


def _keys(preset: Preset) -> list[str]:
    """The variables that are passed on to the tool, each enough to do without a login."""
    return [name for name in preset.login_keys if name in preset.passes]


def _is_logged_out(argv: tuple[str, ...], runner: Mapping[str, Any]) -> bool:
    try:
        env, cwd = environment(runner.get("cwd"), {}), runner.get("cwd")
        asked = run_to_end(argv, env=env, cwd=cwd, seconds=PATIENCE_S)
    except (OSError, TookTooLong):
        return False  # it does not say
    return asked.exit_code == 1
