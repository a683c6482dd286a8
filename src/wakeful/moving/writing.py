"""What was found as YAML: a new `wakeful.yaml`, or more in one that exists, which keeps everything that it has."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import indent
from typing import Any

import yaml

from wakeful.config.loading import load
from wakeful.config.reading import ConfigError
from wakeful.errors import AlreadyExists, InvalidSetting
from wakeful.moving.checking import Batch, Checked, with_existing
from wakeful.moving.found import HEARTBEAT, PROGRAM, SCHEDULE

PROGRAMS = "jobs of a program cannot be written into a file: store it with --yes"
_PLAIN = re.compile(r"[A-Za-z_/][\w./~@+-]*(?: [\w./~@+-]+)*")
_BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class _Dumper(yaml.SafeDumper):
    """Texts are quoted wherever YAML could take them for something else."""

    def ignore_aliases(self, _: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = None if _PLAIN.fullmatch(text) else '"'
    if "\n" in text and not _BREAKS.search(text.replace("\n", "")) and text.strip() and text[0] not in " \n":
        style = "|"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def dumped(data: Mapping[str, Any], depth: int = 0) -> str:
    """A section as YAML, indented by so many levels."""
    text = yaml.dump(dict(data), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100_000)
    return indent(text, "  " * depth)


def compare_file(batch: Batch, path: Path) -> Batch:
    """The batch with those marked that the file has already; names alone count, for the file is its owner's."""
    there: dict[str, str | None] = {}
    if path.exists():
        data = load_tolerant(path)
        there = dict.fromkeys(_section(data, "jobs"))
        for agent, settings in _section(data, "agents").items():
            said = settings if isinstance(settings, dict) else {}
            own = [*_section(said, "schedules"), *([HEARTBEAT] if HEARTBEAT in said else [])]
            there |= dict.fromkeys(f"{agent}.{name}" for name in own)
            taken = f"{path} has an agent {agent!r}: add this to its schedules by hand"
            others = [one.found.name for one in batch.entries if one.found.agent == agent]
            there = {**dict.fromkeys(others, taken), **there}
    programs = {one.found.name: PROGRAMS for one in batch.entries if one.found.part == PROGRAM}
    return with_existing(batch, {**there, **programs})


def load_tolerant(path: Path) -> dict[str, Any]:
    """The data of a configuration that is valid."""
    from wakeful.config.reading import read_plain

    load(path, needs=())
    data = read_plain(path).data
    return data if isinstance(data, dict) else {}


def _section(data: Mapping[str, Any], key: str) -> dict[str, Any]:
    found = data.get(key)
    return found if isinstance(found, dict) else {}


def write(batch: Batch, path: Path, origin: str) -> None:
    """Put what is new into the file; nothing is written unless the whole file is valid then."""
    if path.is_symlink():
        raise InvalidSetting(f"{path} is a link: name the file that it leads to.")
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    for key, blocks in (("jobs", list(_jobs(batch.new))), ("agents", list(_agents(batch)))):
        text = inserted(text, key, blocks, origin) if blocks else text
    _replace(path, text)


def _jobs(entries: Sequence[Checked]) -> Iterator[str]:
    for one in entries:
        if one.found.agent is None:
            yield f"{_comment(one)}{dumped({one.found.name: one.job})}"


def _agents(batch: Batch) -> Iterator[str]:
    """Agents that have something new, each with its schedules."""
    for name, settings in batch.agents.items():
        own = [one for one in batch.new if one.found.agent == name]
        if not own:
            continue
        text = dumped({name: settings})
        for one in own:
            if one.found.part == HEARTBEAT:
                text += indent(_comment(one), "  ") + dumped({"heartbeat": one.job}, 1)
        schedules = [one for one in own if one.found.part == SCHEDULE]
        text += "  schedules:\n" if schedules else ""
        for one in schedules:
            text += indent(_comment(one), "    ") + dumped({one.found.name.partition(".")[2]: one.job}, 2)
        yield text


def _comment(one: Checked) -> str:
    """Where an entry came from, and how it differs."""
    lines = [f"from {one.found.source}", *(f"differs: {note}" for note in one.found.notes)]
    return "".join(f"# {_BREAKS.sub(' ', line)}\n" for line in lines)


def inserted(text: str, key: str, blocks: Sequence[str], origin: str) -> str:
    """A file's text with more in one of its sections; all that it has stays as it is written."""
    said = f"# Imported by {_BREAKS.sub(' ', origin)}\n"
    node = yaml.compose(text, Loader=yaml.SafeLoader) if text.strip() else None
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    section = next((value for name, value in pairs if name.value == key), None)
    if section is None:
        gap = "" if not text or text.endswith("\n") else "\n"
        return f"{text}{gap}{'' if not text else chr(10)}{key}:\n{indent(said + ''.join(blocks), '  ')}"
    if not isinstance(section, yaml.MappingNode) or section.flow_style or not section.value:
        raise InvalidSetting(f"The section {key} is not written line by line: write one entry below it first.")
    column = section.value[0][0].start_mark.column
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    at = min(_end(section), len(lines))
    return "".join([*lines[:at], indent(said + "".join(blocks), " " * column), *lines[at:]])


def _end(node: yaml.Node) -> int:
    """The line after the last one of a section."""
    while isinstance(node, yaml.MappingNode | yaml.SequenceNode) and node.value and not node.flow_style:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    return int(node.end_mark.line + (1 if node.end_mark.column else 0))


def _replace(path: Path, text: str) -> None:
    """Write the file at once, if it is valid."""
    try:
        number, name = tempfile.mkstemp(prefix=".wakeful-import-", suffix=".yaml", dir=path.parent)
    except OSError as error:
        raise InvalidSetting(f"{path} cannot be written ({error.strerror}).") from None
    new = Path(name)
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(text)
        new.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o644)
        try:
            load(new, needs=())
        except ConfigError as error:
            said = str(error).replace(str(new), str(path))
            raise AlreadyExists(f"Nothing was written, because {path} would not be valid: {said}") from None
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
