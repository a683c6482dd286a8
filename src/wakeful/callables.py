"""Functions that a configuration names: in a file next to it, or in a module that is installed.

A file is loaded by its path under a private name, so that two files of one name do not meet and none takes the place of
an installed module; it is loaded again when it changed. What it imports itself is also found next to it.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wakeful.errors import InvalidJob
from wakeful.trust import ADVICE, distrust_below

_loaded: dict[str, tuple[int, Any]] = {}


def beside(reference: str, folder: Path) -> str:
    """`module:function` as `/path/module.py:function` where that file lies in the folder, else as it is."""
    module, _, function = reference.rpartition(":")
    file = folder / Path(module if module.endswith(".py") else f"{module.replace('.', '/')}.py").expanduser()
    return f"{file}:{function}" if module.endswith(".py") or file.is_file() else reference


def load_function(reference: str) -> Any:
    """What `module:function` or `/path/file.py:function` names; InvalidJob where there is no such function."""
    place, _, name = reference.rpartition(":")
    found = _from_file(Path(place)) if place.endswith(".py") else _installed(place)
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise InvalidJob(f"{place} has no function {name!r}.")
    return found


def _installed(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InvalidJob(f"The module {name!r} cannot be imported: {error}.") from None


def _from_file(path: Path) -> Any:
    try:
        changed = path.stat().st_mtime_ns
    except OSError as error:
        raise InvalidJob(f"{path} cannot be read ({error.strerror}).") from None
    known = _loaded.get(str(path))
    if known is not None and known[0] == changed:
        return known[1]
    if (doubt := distrust_below(path)) is not None:
        raise InvalidJob(f"{path} is not used because {doubt}: {ADVICE}.")
    private = f"_wakeful_file_{hashlib.sha256(str(path).encode()).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(private, path)
    if spec is None or spec.loader is None:
        raise InvalidJob(f"{path} is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(private)
    sys.modules[private] = module  # dataclasses and pickles look themselves up there
    try:
        with _on_path(path.parent):
            spec.loader.exec_module(module)
    except Exception as error:
        sys.modules.pop(private, None)
        if before is not None:
            sys.modules[private] = before
        raise InvalidJob(f"{path} cannot be loaded: {type(error).__name__}: {error}.") from error
    _loaded[str(path)] = (changed, module)
    return module


@contextlib.contextmanager
def _on_path(folder: Path) -> Iterator[None]:
    """Modules are looked for in the folder last, for as long as a file in it is loaded."""
    sys.path.append(str(folder))
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # the file took it away
            sys.path.remove(str(folder))
