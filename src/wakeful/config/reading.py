"""A configuration file as plain data that remembers its lines, with `${NAME}` and `${file:…}` filled in.

YAML is read by the rules of its version 1.2: `no` and `on` are texts, and so is 22:00. What came from the environment
or a file may be a secret: its place is remembered, and no message shows it.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import yaml
from yaml.composer import Composer

from wakeful.config.units import without_unit
from wakeful.errors import InvalidSetting
from wakeful.references import NOT_A_VARIABLE, REFERENCE, looked_up, reason, text_of, variables_in
from wakeful.trust import ADVICE, distrust_below

LARGEST = 1024 * 1024
MOST_VALUES = 200_000
DEEPEST = 50
TAGS = ("null", "bool", "int", "float", "str", "seq", "map")
EXTENSION = "x-"
"""How keys begin that are there for anchors, or for other programs."""
KEPT = ("jobs", "agents")
"""Sections whose references are kept: their values are looked up when they are used."""
MERGE = "<<"

Where = tuple[str | int, ...]


class Fault(NamedTuple):
    """One thing that is wrong with a file, and where."""

    file: str
    line: int | None
    key: str
    message: str
    column: int | None = None

    def __str__(self) -> str:
        return f"{self.file}{f', line {self.line}' if self.line is not None else ''}: {self.message}"


class ConfigError(InvalidSetting):
    """A configuration file that cannot be used; `.faults` has everything that is wrong with it."""

    exit_code = 1  # as of wakeful check
    code = "invalid_config"

    def __init__(self, faults: list[Fault], file: str | None = None) -> None:
        """`file`: the one to check, where the first fault is in one that it includes."""
        rest, whole = len(faults) - 1, shlex.quote(file if file is not None else faults[0].file)
        more = f" (and {rest} more: wakeful check {whole})" if rest else ""
        super().__init__(f"{faults[0]}{more}")
        self.faults = faults


class ValueOrigin(NamedTuple):
    """Where a value is written that another place has, too."""

    file: str
    where: Where
    line: int
    column: int


class Raw(NamedTuple):
    """A file's data; `lines` and `columns` say where each value is, `secrets` which ones must not be shown.

    `faults` is what could not be filled in, `repeated` are keys that are given twice, `known` is what variables were
    filled in from. `origins`: what agents take from `agents.defaults`.
    """

    path: Path
    data: Any
    lines: dict[Where, int]
    secrets: set[Where]
    columns: dict[Where, int]
    faults: list[Fault]
    repeated: list[Fault]
    origins: dict[Where, ValueOrigin]
    text: str = ""
    known: Mapping[str, str] = {}

    def fault(self, where: Where, message: str) -> Fault:
        at = next((where[:end] for end in range(len(where), -1, -1) if where[:end] in self.lines), None)
        if at is not None and at in self.origins:
            origin = self.origins[at]
            place = (*origin.where, *where[len(at) :])
            message = message.replace(_shown(at[:2]), _shown(place[:2]), 1)
            return Fault(origin.file, origin.line, _shown(place), message, origin.column)
        line, column = (None, None) if at is None else (self.lines[at], self.columns.get(at))
        return Fault(str(self.path), line, _shown(where), message, column)


class _YamlLoader(yaml.SafeLoader):
    """Scalars mean what YAML 1.2 says they mean."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - the parent's own shape


class _QuickLoader(Composer, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """The same, several times as fast where PyYAML has libyaml.

    Nodes are put together by Python: libyaml would overrun the stack of the process with a file that is nested deeply.
    """

    def __init__(self, text: str) -> None:
        super(Composer, self).__init__(text)
        Composer.__init__(self)

    yaml_implicit_resolvers = _YamlLoader.yaml_implicit_resolvers


for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
):
    _YamlLoader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), [*_first.replace("\0", ""), ""]
    )


def read_config(path: Path, environ: Mapping[str, str] = os.environ) -> Raw:
    """The file's data with everything filled in; ConfigError for what is no file of keys and values.

    What could not be filled in is in `faults`. The sections in KEPT stay as they are written.
    """
    raw = read_plain(path)
    known = {**_tolerant_env_file(raw, environ), **environ}
    kept = {key: value for key, value in raw.data.items() if key in KEPT}
    data = {key: value for key, value in raw.data.items() if key not in KEPT}
    return raw._replace(data={**_filled(raw, data, (), known, raw.faults), **kept}, known=known)


def read_plain(path: Path) -> Raw:
    """The file's data as it is written."""
    text = _text_of(path)
    raw = _parse(path, text)._replace(text=text)
    _composed.cache_clear()  # what a file is made of takes much more than the file
    data = {} if raw.data is None else raw.data
    if not isinstance(data, dict):
        raise ConfigError([raw.fault((), "The file must hold keys and values, such as store: sqlite:///wakeful.db.")])
    raw = raw._replace(data={key: value for key, value in data.items() if not key.startswith(EXTENSION)})
    raw.faults.extend(raw.fault(where, message) for where, message in without_unit(raw.data))
    return raw


def plain_data(path: Path, text: str) -> Any:
    """The data of any YAML text, with the bounds of a configuration; `path` is what messages call it."""
    data = _parse(path, text).data
    _composed.cache_clear()
    return data


def _tolerant_env_file(raw: Raw, environ: Mapping[str, str]) -> dict[str, str]:
    try:
        return _env_file(raw, environ)
    except ConfigError as error:
        raw.faults.extend(error.faults)
        return {}


class Basics(NamedTuple):
    """What every command needs of a file: its store and the zone of times that name none, as they are written."""

    store: str | None
    timezone: str | None


def basics_in(path: Path, environ: Mapping[str, str] = os.environ) -> Basics:
    """Both, without looking at the rest of the file. A zone that is no text is reported where it is used."""
    raw = _parse(path, _text_of(path))
    if raw.repeated:
        raise ConfigError(raw.repeated)
    data = raw.data if isinstance(raw.data, dict) else {}
    defaults = data.get("defaults")
    zone = defaults.get("timezone") if isinstance(defaults, dict) else None
    if isinstance(zone, str) and "${" in zone:
        known = {**_tolerant_env_file(raw, environ), **environ}
        zone = _filled(raw, zone, ("defaults", "timezone"), known, []) or zone
    return Basics(_store(raw, data.get("store"), environ), str(zone) if zone is not None else None)


def _store(raw: Raw, store: object, environ: Mapping[str, str]) -> str | None:
    if store is None:
        return None
    if not isinstance(store, str) or not store.strip():
        raise ConfigError([raw.fault(("store",), "store is the address of a store, such as sqlite:///wakeful.db.")])
    faults: list[Fault] = []
    known = {**_env_file(raw, environ), **environ} if "${" in store else environ
    filled = _filled(raw, store, ("store",), known, faults)
    if faults:
        raise ConfigError(faults)
    return str(filled)


# -- YAML -------------------------------------------------------------------------------------------------------------


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise ConfigError([Fault(str(path), None, "", "The file is larger than 1 MiB: this is no configuration.")])
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError([Fault(str(path), None, "", "The file is not UTF-8 text.")]) from None
    except OSError as error:
        message = f"The file cannot be read ({error.strerror})."
        raise ConfigError([Fault(str(path), None, "", message)]) from error


def _parse(path: Path, text: str) -> Raw:
    raw = Raw(path, None, {}, set(), {}, [], [], {})
    try:
        loader, node = _composed(text)
        return raw if node is None else raw._replace(data=_Walk(loader, raw).value(node, (), ()))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        said = " ".join(str(getattr(error, "problem", None) or "it cannot be read").split())
        if "'\\t'" in said:
            said = "a line is indented with a tab: use spaces"
        if said.startswith("expected alphabetic or numeric character") and _begins_with_star(text, mark):
            said = 'a value that begins with * must be in quotes, such as cron: "*/5 * * * *"'
        if said == "but found another document":
            said = "a second document begins here, and one is all there may be"
        message = f"This is not YAML: {said}."
        line, column = (mark.line + 1, mark.column + 1) if mark else (None, None)
        raise ConfigError([Fault(str(path), line, "", message, column)]) from None
    except RecursionError:
        raise ConfigError([Fault(str(path), None, "", f"The file is nested deeper than {DEEPEST} levels.")]) from None


def _begins_with_star(text: str, mark: Any) -> bool:
    """Whether YAML stopped at the first character after a star, which it takes for the name of an alias."""
    return mark is not None and text.splitlines()[mark.line][: mark.column].endswith("*")


@lru_cache(maxsize=1)
def _composed(text: str) -> tuple[_YamlLoader, yaml.Node | None]:
    """The file as nodes, once for who reads its basics and then the whole.

    What the quick loader refuses is read by the other, which says better what is wrong.
    """
    for kind in (_QuickLoader, _YamlLoader):
        loader: Any = kind(text)
        try:
            return loader, loader.get_single_node()
        except yaml.YAMLError:
            if kind is _YamlLoader:
                raise
        finally:
            loader.dispose()
    raise AssertionError


class _Walk:
    """Turns nodes into data; what aliases repeat is counted, so that a small file cannot become a huge one."""

    def __init__(self, loader: _YamlLoader, raw: Raw) -> None:
        self._loader = loader
        self._raw = raw
        self._left = MOST_VALUES

    def value(self, node: yaml.Node, where: Where, above: tuple[int, ...]) -> Any:
        if where not in self._raw.lines:
            self._note(where, node)
        self._count(where, node, above)
        if node.tag.removeprefix("tag:yaml.org,2002:") not in TAGS:
            self._refuse(where, f"The tag {node.tag} means nothing here.")
        above = (*above, id(node))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, where, above)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*where, index), above) for index, item in enumerate(node.value)]
        try:
            return self._loader.construct_object(node)
        except ValueError:
            self._refuse(where, f"{node.value!r:.40} cannot be read.")

    def _count(self, where: Where, node: yaml.Node, above: tuple[int, ...]) -> None:
        self._left -= 1
        if self._left < 0 or len(where) > DEEPEST or id(node) in above:
            self._refuse(where, "The file is nested too deeply or repeats itself without end.")

    def _mapping(self, node: yaml.MappingNode, where: Where, above: tuple[int, ...]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: list[yaml.Node] = []
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._refuse(where, "A key must be a plain text.", key)
            name = str(key.value)
            if name == MERGE and key.style not in ("'", '"'):
                merged += value.value if isinstance(value, yaml.SequenceNode) else [value]
                self._refuse_unmergeable(where, key, merged)
                continue
            if name in found:
                self._repeat((*where, name), key)
                continue
            self._note((*where, name), key)
            found[name] = self.value(value, (*where, name), above)
        for other in merged:
            found = {**self._others(other, found, where, above), **found}
        return found

    def _others(
        self, node: yaml.Node, found: Mapping[str, Any], where: Where, above: tuple[int, ...]
    ) -> dict[str, Any]:
        """What a section brings that is merged into another, besides what that has itself."""
        self._count(where, node, above)
        kept = [pair for pair in node.value if not isinstance(pair[0], yaml.ScalarNode) or pair[0].value not in found]
        return self._mapping(yaml.MappingNode(node.tag, kept, node.start_mark), where, (*above, id(node)))

    def _refuse_unmergeable(self, where: Where, key: yaml.Node, nodes: list[yaml.Node]) -> None:
        if not all(isinstance(node, yaml.MappingNode) for node in nodes):
            self._refuse(where, "<< takes a section, or a list of sections, such as <<: *name.", key)

    def _repeat(self, where: Where, key: yaml.Node) -> None:
        """A key that was there already: the first counts while the rest of the file is looked at."""
        line, column = key.start_mark.line + 1, key.start_mark.column + 1
        name = ".".join(map(str, where))
        self._raw.repeated.append(Fault(str(self._raw.path), line, name, f"{where[-1]!r} is given twice.", column))

    def _note(self, where: Where, node: yaml.Node) -> None:
        self._raw.lines[where] = node.start_mark.line + 1
        self._raw.columns[where] = node.start_mark.column + 1

    def _refuse(self, where: Where, message: str, node: yaml.Node | None = None) -> NoReturn:
        fault = self._raw.fault(where, message)
        if node is not None:
            fault = fault._replace(line=node.start_mark.line + 1, column=node.start_mark.column + 1)
        raise ConfigError([fault])


# -- ${NAME} ----------------------------------------------------------------------------------------------------------


def _filled(raw: Raw, value: Any, where: Where, known: Mapping[str, str], faults: list[Fault]) -> Any:
    """The value with every reference replaced; what cannot be is added to `faults`."""
    if isinstance(value, dict):
        return {key: _filled(raw, item, (*where, key), known, faults) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(raw, item, (*where, index), known, faults) for index, item in enumerate(value)]
    if not isinstance(value, str) or "${" not in value:
        return value

    def replace(match: re.Match[str]) -> str:
        if match[1]:
            return match[0][1:]  # $${NAME} is ${NAME}, literally
        raw.secrets.add(where)
        try:
            return looked_up(match[2], raw.path.parent, known, raw.path)
        except InvalidSetting as error:
            faults.append(raw.fault(where, f"{_shown(where)} {error}"))
            return ""

    return REFERENCE.sub(replace, value)


def _shown(where: Where) -> str:
    return ".".join(map(str, where))


def _env_file(raw: Raw, environ: Mapping[str, str]) -> dict[str, str]:
    """What the file named by `env_file` sets; the environment itself comes first."""
    named = raw.data.get("env_file")
    if not isinstance(named, str):
        return {}
    faults: list[Fault] = []
    path = Path(str(_filled(raw, named, ("env_file",), environ, faults)))
    try:
        path = raw.path.parent / path.expanduser()
        doubt = distrust_below(path, named_by=raw.path)
        lines = _lines_of(path) if doubt is None else []
    except (OSError, RuntimeError, ValueError) as error:
        message = f"env_file {path} cannot be read ({reason(error)})."
        raise ConfigError([*faults, raw.fault(("env_file",), message)]) from None
    if doubt is not None:
        message = f"env_file {path} is not used because {doubt}: {ADVICE}."
        raise ConfigError([*faults, raw.fault(("env_file",), message)])
    found, wrong = variables_in(lines)
    if wrong is not None:
        raise ConfigError([Fault(str(path), wrong, "env_file", NOT_A_VARIABLE)])
    return found


def _lines_of(path: Path) -> list[str]:
    with path.open("rb") as file:  # which may be a pipe: some keepers of secrets offer theirs as one
        return text_of(file, LARGEST).splitlines()
