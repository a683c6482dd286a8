"""What a runner is: the part of an agent's definition that says how it is called, read and checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from wakeful.agents.runners.judging import Signs
from wakeful.agents.runners.output import OutputForm
from wakeful.agents.runners.paths import read_path
from wakeful.agents.runners.presets import OPTIONS, PRESETS, Preset
from wakeful.errors import InvalidJob

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
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


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

    def argv(self, prompt: str, session: str | None) -> tuple[str, ...]:
        """The arguments of one call. Only the places we know are filled in; other braces stay as they are."""
        form = self.start if session is None or self.resume is None else self.resume
        # The prompt last: what it says in braces is its own.
        filled = (item.replace("{session}", session or "") for item in form)
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
    return runner.get("account") or runner.get("preset")


def command_form(runner: Mapping[str, Any]) -> CommandForm:
    """A command runner, or a preset, as it is called; InvalidJob says what is wrong."""
    if runner.get("preset") is not None:
        return _of_preset(runner)
    start, resume = _argv("start", runner["start"]), runner.get("resume")
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
        raise InvalidJob(f"There is no preset {name!r:.60}: there are {', '.join(PRESETS)}.")
    return PRESETS[name]


def check_env(given: Any) -> tuple[str, ...]:
    """NAME or NAME=value, each."""
    for item in given:
        if not isinstance(item, str) or not _VARIABLE.fullmatch(item.partition("=")[0]):
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
        options += [option, ",".join(value) if key == "tools" else f"{value:g}" if key == "max_cost" else str(value)]
    if runner.get("only_tools") and preset.only_tools is not None:
        options += [preset.only_tools, ",".join(dict.fromkeys(tool.partition("(")[0] for tool in runner["tools"]))]
    options += runner.get("args", ())
    if name == "scripted" and not options:
        raise InvalidJob("The preset scripted needs args, the program and its arguments: args: [./agent.sh].")
    own = Signs(**{sign: _pattern(sign, runner.get(sign)) for sign in SIGNS})
    signs = Signs._make(mine or theirs for mine, theirs in zip(own, preset.signs, strict=True))
    return CommandForm(
        _with_options(preset.start, options),
        None if preset.resume is None else _with_options(preset.resume, options),
        "stdin",
        preset.output,
        signs,
        (*(f"{key}={value}" for key, value in preset.env), *check_env(runner.get("env", ()))),
        runner.get("cwd"),
        preset.cumulative,
        runner.get("timeout", DEFAULT_TIMEOUT_MS),
    )


_ABLE = {"model": "choose a model", "tools": "limit the tools of a run"}


def _with_options(form: tuple[str, ...], options: list[str]) -> tuple[str, ...]:
    place = form.index(OPTIONS)
    return (*form[:place], *options, *form[place + 1 :])


def _argv(key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not value or not all(isinstance(item, str) for item in value):
        raise InvalidJob(f'{key} is a list, the program and its arguments, such as ["my-agent", "-p"].')
    if any("\0" in item for item in value):
        raise InvalidJob(f"{key} contains a NUL byte, which no program can be given.")
    return tuple(value)


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


def _pattern(name: str, value: Any) -> str | None:
    pattern = value.get("pattern") if isinstance(value, Mapping) else value
    if pattern is None:
        return None
    try:
        re.compile(pattern)
    except (re.error, TypeError) as error:
        raise InvalidJob(f"{name}.pattern is no regular expression: {error}.") from None
    return str(pattern)
