"""docs/cli.md cannot lie: every command and option is in it, and what it shows is what happens."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from wakeful.surfaces.cli import command_tree

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
STEPS = re.findall(
    r"this is `([\w.]+)`[^\n]*:\n\n```\w+\n(.*?)```|```console\n\$ (wakeful [^\n]+)\n(.*?)```",
    PAGE,
    re.DOTALL | re.IGNORECASE,
)
"""In the order of the page: a file and its content, or a command and what it shows."""
IDS = re.compile(r"\b(?:wrk|dlv)_[0-9a-z]{13}\b")


def commands():
    """Every command, those in groups by both words."""
    for name, command in command_tree().commands.items():
        for inner, each in getattr(command, "commands", {}).items():
            yield f"{name} {inner}", each
        if not hasattr(command, "commands"):
            yield name, command


def section(name):
    """What the page says about a command: from its heading to the next."""
    _, _, after = PAGE.partition(f"\n### {name.split()[0]}\n")
    return re.split(r"\n##+ ", after, maxsplit=1)[0]


@pytest.mark.parametrize(
    ("name", "command"), list(commands()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_command_and_option_is_documented_with_an_example(name, command):
    text = section(name)
    assert f"$ wakeful {name}" in text, f"no example of {name}"
    known = text + (section("add") if name == "edit" else "") + PAGE.partition("## Jobs")[0]
    options = {flag for parameter in command.params for flag in parameter.opts if flag.startswith("-")}
    assert {flag for flag in options if not re.search(rf"(?<![\w-]){flag}(?![\w-])", known)} == set()


def test_every_documented_option_exists():
    known = {
        flag
        for _, command in commands()
        for parameter in command.params
        for flag in (*parameter.opts, *parameter.secondary_opts)
    }
    known |= {flag for parameter in command_tree().params for flag in parameter.opts} | {"--help"}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", PAGE)) - known == set()


def first_words(text, *, wrapped=False):
    """What begins each line, or each sentence of what is wrapped, ids and numbers apart: whatever the time is."""
    if wrapped:  # where a line ends depends on how long the times in it are
        text = re.sub(r"\.\s+", ".\n", " ".join(text.split()))
    words = [line.split()[0] for line in text.splitlines() if line.strip()]
    words = [re.sub(r"^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)$", "weekday", word) for word in words]
    return [re.sub(r"_[0-9a-z]{13}", "_", word) for word in words]


def write(file, content):
    file.write_text(content)
    file.chmod(0o755 if file.suffix == ".sh" else 0o644)


def test_what_the_page_shows_is_what_happens(wakeful, here, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")  # a line is wrapped by the length of the times in it, which varies
    assert len(STEPS) > 60
    known: dict[str, str] = {}  # ids of the page, and those that there are
    for name, content, line, shown in STEPS:
        if name:
            write(here / name, content)
            continue
        answer = wakeful(*shlex.split(IDS.sub(lambda found: known.get(found[0], found[0]), line))[1:])
        wrapped = shlex.split(line)[1] == "explain"
        said = set(first_words(answer.out, wrapped=wrapped) + first_words(answer.err))
        assert set(first_words(shown, wrapped=wrapped)) <= said, line
        assert (answer.code == 0) == ("Error:" not in shown and "✗" not in shown), line
        known.update(zip(IDS.findall(shown), IDS.findall(answer.out), strict=False))
