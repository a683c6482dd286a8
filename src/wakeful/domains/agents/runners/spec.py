"""What a runner is: the part of an agent's definition that says how it is called, read and checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, NamedTuple

from wakeful.domains.agents.runners.judging import Signs
from wakeful.domains.agents.runners.output import OutputForm
from wakeful.domains.agents.runners.paths import read_path
from wakeful.domains.agents.runners.presets import NEW_SESSION, OPTIONS, PRESETS, SECONDS, Preset
from wakeful.errors import InvalidJob, InvalidSetting
from wakeful.patterns import Pattern
from wakeful.references import VARIABLE
from wakeful.spelling import did_you_mean

DEFAULT_TIMEOUT_MS = 30 * 60_000
FORMS = ("preset", "start", "url", "python")
SIGNS = ("success", "failure", "rate_limit", "session_gone", "overload")
_RESULT = {
    "reply": "result", "session": "session_id", "cost": "total_cost_usd",
    "tokens": ["usage.input_tokens", "usage.output_tokens"], "error": "is_error",
}  # fmt: skip
USUAL: Mapping[str, Mapping[str, Any]] = {
    "json": {"format": "json", **_RESULT},
    "jsonl": {"format": "jsonl", **_RESULT, "match": {"type": "result"}},
}
"""What `output: json` and `output: jsonl` stand for: the names that most tools use."""
_WORD = re.compile(r"[a-z0-9]+")
_TAKE_PATHS = {_WORD.findall(preset.start[0])[0] for preset in PRESETS.values() if preset.takes_paths}


class CommandForm(NamedTuple):
    """A program to be called: argument lists with `{session}` and perhaps `{prompt}` in them."""

    start: tuple[str, ...]
    resume: tuple[str, ...] | None
    prompt: str
    output: OutputForm
    signs: Signs
    env: tuple[str, ...]
    cwd: str | None = None
    cumulative: bool = False
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    is_known: bool = False  # a program of others, whose version matters
    names_sessions: bool = False  # a session that begins is given its id

    def argv(self, prompt: str, session: str | None, new: str = "") -> tuple[str, ...]:
        """The arguments of one call, `new` for a session that begins. Only the places we know are filled in."""
        form = self.start if session is None or self.resume is None else self.resume
        # The prompt last: what it says in braces is its own.
        filled = (item.replace("{session}", session or "") for item in form)
        filled = (item.replace(NEW_SESSION, new) for item in filled) if self.names_sessions else filled
        filled = (item.replace("{prompt}", prompt) for item in filled)
        return (*filled, prompt) if self.prompt == "argument" else tuple(filled)

    @property
    def stdin(self) -> bool:
        """Whether the prompt goes to standard input."""
        return self.prompt == "stdin" and not any("{prompt}" in item for item in self.start)


def form_of(runner: Mapping[str, Any]) -> str:
    """Which of the forms a runner has; InvalidJob if it has none or several."""
    given = [form for form in FORMS if runner.get(form) is not None]
    if len(given) != 1:
        what = "has none of" if not given else f"has {' and '.join(given)}, and takes one of"
        raise InvalidJob(f"A runner {what} preset, start, url, python: write runner: {{preset: claude}}, for example.")
    return given[0]


def account_of(runner: Mapping[str, Any]) -> str | None:
    """Whose rate limit a runner shares: what it says, else the preset's name."""
    given = runner.get("account")
    return (given.get("name") if isinstance(given, Mapping) else given) or runner.get("preset")


def limited_as(payload: Mapping[str, Any]) -> str | None:
    """Whose rate limit the runs of a job meet: its account's, else the agent's own; None where it calls no agent."""
    runner = payload.get("runner")
    return (account_of(runner) or f"agent:{payload['agent']}") if runner else None


def account_lane(runner: Mapping[str, Any]) -> dict[str, int]:
    """The lane of a runner's account: of the size it says, else of one where runs would log each other out."""
    given, preset = runner.get("account"), PRESETS.get(runner.get("preset") or "")
    most = given.get("max_concurrent") if isinstance(given, Mapping) else None
    if most is None and preset is not None and preset.login_keys:
        named = {item.partition("=")[0] for item in runner.get("env") or ()}
        most = None if named.intersection(preset.login_keys) else 1
    return {} if most is None else {f"account:{account_of(runner)}": most}


def passed_names(runner: Mapping[str, Any]) -> list[str]:
    """The names of the variables that the runner's program is given; their values are nowhere shown."""
    preset = PRESETS.get(runner.get("preset") or "")
    own = [str(item).partition("=")[0] for item in runner.get("env") or ()]
    return list(dict.fromkeys([*(preset.passes if preset is not None else ()), *own]))


def command_form(runner: Mapping[str, Any]) -> CommandForm:
    """A command runner, or a preset, as it is called; InvalidJob says what is wrong."""
    if runner.get("preset") is not None:
        return _of_preset(runner)
    start, resume = _argv("start", runner["start"]), runner.get("resume")
    _check_prompt(runner)
    return CommandForm(
        (*start, *runner.get("args", ())),
        None if resume is None else (*_argv("resume", resume), *runner.get("args", ())),
        runner.get("prompt", "stdin"),
        _output(runner.get("output", "text"), runner.get("rate_limit") or {}),
        Signs(**{name: _pattern(name, runner.get(name)) for name in SIGNS}),
        check_env(runner.get("env", ())),
        runner.get("cwd"),
        timeout_ms=runner.get("timeout", DEFAULT_TIMEOUT_MS),
    )


def preset_of(runner: Mapping[str, Any]) -> Preset | None:
    name = runner.get("preset")
    if name is None:
        return None
    if name not in PRESETS:
        hint = did_you_mean(str(name), PRESETS, f"There are {', '.join(PRESETS)}.")
        raise InvalidJob(f"There is no preset {name!r:.60}.{hint}")
    return PRESETS[name]


def program_of(runner: Mapping[str, Any]) -> str:
    """What keeps the sessions of a runner: a program by its name, else the form. One does not know those of another."""
    if runner.get("preset") is not None:
        return str(runner["preset"])
    return PurePath(runner["start"][0]).name if runner.get("start") else "url" if runner.get("url") else "python"


def takes_paths(runner: Mapping[str, Any]) -> bool:
    """Whether the program takes `@path` in a prompt for the file; also one that another program starts.

    Such a program is known by its name, wherever that is written: `npx @google/gemini-cli`, `/opt/claude.sh`. To be
    wrong about it costs a backslash.
    """
    preset = PRESETS.get(runner.get("preset") or "")
    if preset is not None and preset.takes_paths:
        return True
    written = [word for key in ("start", "resume", "args") for word in runner.get(key) or ()]
    return not _TAKE_PATHS.isdisjoint(_WORD.findall(" ".join(written).lower()))


def check_env(given: Any) -> tuple[str, ...]:
    """NAME or NAME=value, each."""
    for item in given:
        if not isinstance(item, str) or not VARIABLE.fullmatch(item.partition("=")[0]):
            raise InvalidJob(f"env takes NAME, which is passed on, or NAME=value, not {item!r:.60}.")
        if "\0" in item:
            raise InvalidJob("env contains a NUL byte, which no program can be given.")
    return tuple(given)


def _of_preset(runner: Mapping[str, Any]) -> CommandForm:
    preset = preset_of(runner)
    assert preset is not None  # noqa: S101 - asked for by name
    name = runner["preset"]
    options = []
    for key, option in (("model", preset.model), ("tools", preset.tools), ("max_cost", preset.max_cost)):
        value = runner.get(key)
        if value is None or (option is None and key == "max_cost"):  # that one limits budgets, too
            continue
        if option is None:
            raise InvalidJob(f"The preset {name} cannot {_ABLE[key]}: remove {key}, or use another preset.")
        text = ",".join(value) if key == "tools" else f"{value:g}" if key == "max_cost" else str(value)
        options += [option, text] if option else [text]
    if runner.get("only_tools") and preset.only_tools is not None:
        options += [preset.only_tools, ",".join(dict.fromkeys(tool.partition("(")[0] for tool in runner["tools"]))]
    if preset.needs_model and runner.get("model") is None:
        raise InvalidJob(f"The preset {name} needs a model: add model, such as model: llama3.2.")
    options += runner.get("args", ())
    if runner.get("only_tools") and "Read" not in (tool.partition("(")[0] for tool in runner["tools"]):
        options += preset.no_read  # the last, so that no other argument has its place
    if name == "scripted" and not options:
        raise InvalidJob("The preset scripted needs args, the program and its arguments: args: [./agent.sh].")
    own = Signs(**{sign: _pattern(sign, runner.get(sign)) for sign in SIGNS})
    signs = Signs._make(mine or theirs for mine, theirs in zip(own, preset.signs, strict=True))
    timeout_ms = runner.get("timeout", DEFAULT_TIMEOUT_MS)
    given = {OPTIONS: options, SECONDS: [str(max(1, timeout_ms // 1000))]}
    return CommandForm(
        _with(preset.start, given),
        None if preset.resume is None else _with(preset.resume, given),
        "stdin",
        preset.output,
        signs,
        (*preset.passes, *(f"{key}={value}" for key, value in preset.env), *check_env(runner.get("env", ()))),
        runner.get("cwd"),
        preset.cumulative,
        timeout_ms,
        is_known=name != "scripted",
        names_sessions=NEW_SESSION in preset.start,
    )


_ABLE = {"model": "choose a model", "tools": "limit the tools of a run"}


def _with(form: tuple[str, ...], given: Mapping[str, list[str]]) -> tuple[str, ...]:
    return tuple(word for item in form for word in given.get(item, [item]))


def _argv(key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not value or not all(isinstance(item, str) for item in value):
        raise InvalidJob(f'{key} is a list, the program and its arguments, such as ["my-agent", "-p"].')
    if any("\0" in item for item in value):
        raise InvalidJob(f"{key} contains a NUL byte, which no program can be given.")
    return tuple(value)


def _check_prompt(runner: Mapping[str, Any]) -> None:
    """A prompt that is written into `start` is not sent to standard input, and must be in `resume`, too."""
    start, resume = ([item for item in runner.get(key) or () if "{prompt}" in item] for key in ("start", "resume"))
    if start and not resume and runner.get("resume") is not None and runner.get("prompt") != "argument":
        raise InvalidJob("start has {prompt} and resume does not: write it into resume as well.")


def reports_cost(runner: Mapping[str, Any]) -> bool:
    """Whether a runner can say what a run cost; a function and a session server can."""
    return form_of(runner) in ("url", "python") or command_form(runner).output.reports_cost


def _output(value: Any, rate_limit: Mapping[str, Any]) -> OutputForm:
    if value == "text":
        return OutputForm()
    if isinstance(value, str):
        value = USUAL[value]
    paths = {key: value.get(key) for key in ("reply", "session", "cost")}
    tokens = value.get("tokens") or ()
    form = OutputForm(
        value["format"],
        **paths,
        tokens=(tokens,) if isinstance(tokens, str) else tuple(tokens),
        error=(value["error"],) if value.get("error") else (),
        match=tuple((value.get("match") or {}).items()),
        resets_at=rate_limit.get("resets_at"),
    )
    if form.reply is None:
        raise InvalidJob("output needs reply, where the reply is found, such as reply: result.")
    every = [*paths.values(), *form.tokens, *form.error, *(path for path, _ in form.match), form.resets_at]
    for path in every:
        if path is not None:
            read_path(path)
    return form


def _pattern(name: str, value: Any) -> Pattern | None:
    pattern = value.get("pattern") if isinstance(value, Mapping) else value
    if pattern is None:
        return None
    try:
        return Pattern(pattern, ignore_case=True)
    except InvalidSetting as error:
        raise InvalidJob(f"{name}.pattern {error}") from None
