"""Calling an agent that is a program or a Python function. One with a `url` is asked by `session_server.py`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from wakeful.child_processes import EnvironmentList, clean_environment
from wakeful.domains.agents.naming import VARIABLE
from wakeful.domains.agents.runners.judging import CallTime, EndedCall, judge, readable
from wakeful.domains.agents.runners.mcp_access import mcp_access
from wakeful.domains.agents.runners.output import OutputReader
from wakeful.domains.agents.runners.spec import CommandForm, command_form, form_of, preset_of
from wakeful.domains.agents.runners.turn import CallFailed, Ending, ProgramInfo, Surroundings, Turn
from wakeful.domains.agents.runners.usage import countable
from wakeful.domains.agents.runners.versions import installed_version
from wakeful.domains.command import ArgumentsRefused, CommandFailed, CommandSpec, CommandTimedOut, Streams, run_program
from wakeful.errors import InvalidJob, InvalidSetting
from wakeful.kernel.engine.long_output import log_path
from wakeful.references import filled, references_in
from wakeful.references import looked_up as value_of
from wakeful.triggers.zones import system_zone

OUTPUT_KEPT = 1024 * 1024
SECRET = ("WAKEFUL_TOKEN",)  # of what a run adds to the environment


async def call_agent(runner: Mapping[str, Any], turn: Turn, around: Surroundings) -> Ending:
    """Ask the agent once, and say what came of it. InvalidJob where the runner cannot be used here."""
    ending = await _call(*looked_up(runner), turn, around)
    return ending if ending.reply is None else ending._replace(reply=countable(ending.reply))


async def _call(runner: dict[str, Any], secrets: set[str], turn: Turn, around: Surroundings) -> Ending:
    form = form_of(runner)
    if form == "python":
        from wakeful.domains.agents.runners.functions import ask_function

        return await ask_function(runner, turn, around)
    if not runner.get("mcp"):
        return await _ask_program(command_form(runner), turn, around, secrets)
    preset = preset_of(runner)
    with mcp_access(None if preset is None else preset.mcp, around.environment) as access:
        extended = {**runner, "args": [*access.args, *runner.get("args", ())]} if access.args else runner
        here = around._replace(environment={**around.environment, **access.environment})
        return await _ask_program(command_form(extended), turn, here, secrets)


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
    listed = EnvironmentList.read(form.env)
    passed = {name: os.environ[name] for name in listed.passed if name in os.environ}
    session = _given_session(form, turn, around)
    spec = CommandSpec(
        form.argv(turn.prompt, turn.session, session or ""),
        cwd=form.cwd,
        pass_env=tuple(passed),
        timeout_ms=form.timeout_ms,
        output_limit=OUTPUT_KEPT,
        stdin=turn.prompt if form.stdin else None,
    )
    # Tools start shells and servers in sessions of their own, and do not end them when they are killed.
    streams = Streams(environment(form.cwd, {**passed, **listed.given}), reader.feed, VARIABLE, over)
    path = log_path(around.folder, turn.run.id)
    secrets = {*secrets, *(around.environment[name] for name in SECRET if around.environment.get(name))}
    late, started_at = None, around.now()
    try:
        result = await run_program(spec, streams, run_env=around.environment, log_path=path, secrets=secrets)
    except CommandFailed as error:
        return CallFailed(str(error), started=False, is_prompt=isinstance(error, ArgumentsRefused))
    except CommandTimedOut as error:
        result, late = error.result, str(error)
    printed, is_text = reader.finish(result.output, result.stderr), form.output.format == "text"
    printed = printed._replace(session=printed.session or session)
    if late is not None and not is_text:
        late = late.partition(":")[0]  # the last line is for programs
    call = EndedCall(
        0 if result.lingered else result.exit_code,  # some tools do not exit after their answer
        result.output,
        result.stderr,
        printed,
        is_text=is_text,
        resumed=turn.session is not None and form.resume is not None,
        error=None if result.lingered else _exit_words(late or result.error(), result.stderr),
        timed_out=late is not None,
    )
    ending = judge(call, form.signs, CallTime(around.now(), _zone_in(streams.environment)))
    if form.is_known:
        version = printed.version or installed_version(spec.argv[0], streams.environment)
        ending = ending._replace(tool=ProgramInfo(started_at, version, printed.denied))
    return ending._replace(log_file=str(result.log_file)) if result.log_file is not None else ending


def _given_session(form: CommandForm, turn: Turn, around: Surroundings) -> str | None:
    """The session of a program that is given its id. A new one is known before it begins: who is cut off continues."""
    if not form.names_sessions:
        return None
    if turn.session is not None:
        return turn.session
    new = str(uuid4())
    around.on_session(new)
    return new


def _zone_in(environment: Mapping[str, str]) -> str:
    """The zone of a program's clock: tools name times in it, without saying so."""
    if "TZ" not in environment:
        return system_zone()
    return environment["TZ"].removeprefix(":").rpartition("zoneinfo/")[2] or "UTC"


def environment(cwd: str | None, given: Mapping[str, str]) -> dict[str, str]:
    """What a runner's program sees: a short list of ours, and what the runner names."""
    place = cwd if cwd is not None else str(Path.cwd())  # some tools trust PWD instead of asking the system
    return clean_environment(given={"TERM": "dumb", "PWD": place, **given})


def _exit_words(error: str | None, stderr: str) -> str | None:
    """What the exit code says; the last line of standard error says why."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    if error is None or not lines:
        return error
    return f"{error.partition(':')[0]}: {readable(lines[-1])[:200]}"
