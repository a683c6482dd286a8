"""Calling an agent by its runner: a program, a session server or a Python function."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wakeful.agents.naming import VARIABLE
from wakeful.agents.runners.judging import Call, Moment, judge
from wakeful.agents.runners.output import OutputReader
from wakeful.agents.runners.spec import CommandForm, command_form, form_of
from wakeful.agents.runners.turn import Ending, Surroundings, Turn, Wrong
from wakeful.command import CommandFailed, CommandSpec, CommandTimedOut, Streams, run_program
from wakeful.errors import InvalidJob, InvalidSetting
from wakeful.kernel.engine.long_output import log_path
from wakeful.references import filled, references_in
from wakeful.references import looked_up as value_of

INHERITED = ("PATH", "HOME", "LANG", "TZ", "USER", "SHELL", "TMPDIR")
OUTPUT_KEPT = 1024 * 1024
SECRET = ("WAKEFUL_TOKEN",)  # of what a run adds to the environment


async def call_agent(runner: Mapping[str, Any], turn: Turn, around: Surroundings) -> Ending:
    """Ask the agent once, and say what came of it. InvalidJob where the runner cannot be used here."""
    runner, secrets = looked_up(runner)
    form = form_of(runner)
    if form == "url":
        from wakeful.agents.runners.session_server import ask_server  # loads httpx

        return await ask_server(runner, turn, around)
    if form == "python":
        from wakeful.agents.runners.functions import ask_function

        return await ask_function(runner, turn, around)
    return await _ask_program(command_form(runner), turn, around, secrets)


def looked_up(runner: Mapping[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """The runner with every `${NAME}` replaced, and their values; InvalidJob names one that cannot be resolved."""
    secrets: set[str] = set()

    def fill(value: Any, place: str) -> Any:
        if isinstance(value, str):
            try:
                secrets.update(value_of(reference, Path("/"), os.environ) for reference in references_in(value))
                return filled(value, Path("/"), os.environ) if "${" in value else value
            except InvalidSetting as error:
                raise InvalidJob(f"runner.{place} {error}") from None
        if isinstance(value, list):
            return [fill(item, f"{place}.{index}") for index, item in enumerate(value)]
        return value

    return {key: fill(value, key) for key, value in runner.items()}, secrets


async def _ask_program(form: CommandForm, turn: Turn, around: Surroundings, secrets: set[str]) -> Ending:
    over = asyncio.Event()
    reader = OutputReader(form.output, around.on_session, over.set)
    given, passed = _named(form.env)
    spec = CommandSpec(
        form.argv(turn.prompt, turn.session),
        cwd=form.cwd,
        pass_env=tuple(passed),
        timeout_ms=form.timeout_ms,
        output_limit=OUTPUT_KEPT,
        stdin=turn.prompt if form.stdin else None,
    )
    # Tools start shells and servers in sessions of their own, and do not end them when they are killed.
    streams = Streams(environment(form.cwd, {**passed, **given}), reader.feed, VARIABLE, over)
    path = log_path(around.folder, turn.run.id)
    secrets = {*secrets, *(around.environment[name] for name in SECRET if around.environment.get(name))}
    try:
        result = await run_program(spec, streams, run_env=around.environment, log_path=path, secrets=secrets)
    except CommandFailed as error:
        return Wrong(str(error))
    except CommandTimedOut as error:
        log_file = str(error.result.log_file) if error.result.log_file is not None else None
        return Wrong(str(error), log_file, "timeout")
    printed = reader.finish(result.output, result.stderr)
    call = Call(
        0 if result.lingered else result.exit_code,  # some tools do not exit after their answer
        result.output,
        result.stderr,
        printed,
        is_text=form.output.format == "text",
        resumed=turn.session is not None and form.resume is not None,
        error=None if result.lingered else _exit_words(result.error(), result.stderr),
    )
    ending = judge(call, form.signs, Moment(around.now(), around.zone))
    return ending._replace(log_file=str(result.log_file)) if result.log_file is not None else ending


def environment(cwd: str | None, given: Mapping[str, str]) -> dict[str, str]:
    """What a runner's program sees: a short list of ours, and what the runner names."""
    inherited = {name: text for name, text in os.environ.items() if name in INHERITED or name.startswith("LC_")}
    place = cwd if cwd is not None else str(Path.cwd())  # some tools trust PWD instead of asking the system
    return {**inherited, "TERM": "dumb", "PWD": place, **given}


def _named(env: tuple[str, ...]) -> tuple[dict[str, str], dict[str, str]]:
    """What a runner sets, and what it passes on."""
    given = {name: text for name, sign, text in (item.partition("=") for item in env) if sign}
    passed = {item: os.environ[item] for item in env if "=" not in item and item in os.environ}
    return given, {name: text for name, text in passed.items() if name not in given}


def _exit_words(error: str | None, stderr: str) -> str | None:
    """What the exit code says; the last line of standard error says why."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    if error is None or not lines:
        return error
    return f"{error.partition(':')[0]}: {lines[-1][:200]}"
