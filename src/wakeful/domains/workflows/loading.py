"""Workflows from files: loaded again under private names, and known by the hash of all their source.

A version is the hash of the file, of everything it imports from its own folder, and of what it declares. Two versions,
or two folders with a module of the same name, never see each other's modules: `import helpers` in such a file means the
one next to it.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import importlib
import importlib.machinery
import importlib.util
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from wakeful.domains.workflows.authoring import Workflow
from wakeful.domains.workflows.wiring import mistakes
from wakeful.errors import InvalidSetting
from wakeful.trust import ADVICE, distrust_below

MAX_TRACE = 4_000


class FileRef(NamedTuple):
    """A workflow in a file: `invoices.py:workflow`."""

    path: Path
    attribute: str
    config: Any = None
    auto_fix: tuple[str, ...] | None = None
    auto_fix_apply: bool = False
    auto_fix_env: tuple[str, ...] = ()
    home: Path | None = None  # where the program of auto_fix is run
    named_by: Path | None = None  # the configuration that lists it

    @property
    def source(self) -> str:
        """How the store knows where it came from."""
        return f"file:{self.path}:{self.attribute}"


class CannotLoad(NamedTuple):
    """A file that cannot be used, and why."""

    ref: FileRef
    message: str
    trace: str = ""  # through the author's own code
    workflow: Workflow | None = None  # with mistakes in how it is put together


def read_ref(text: str, folder: Path, config: Any = None) -> FileRef:
    """`file.py:name`, relative to a folder; the name is `workflow` where none is given."""
    file, _, attribute = text.rpartition(":") if text.rpartition(":")[2].isidentifier() else (text, "", "")
    if not file:
        file, attribute = text, ""
    if not file.endswith(".py"):
        message = f"A workflow is named as FILE.py:NAME, such as invoices.py:workflow, not {text!r:.80}."
        raise InvalidSetting(message)
    return FileRef((folder / file).resolve(), attribute or "workflow", config)


def load_file(ref: FileRef) -> Workflow | CannotLoad:
    """The workflow in the file, with its version; or what is wrong, with the trace of an error in its code."""
    if not ref.path.exists():
        return CannotLoad(ref, f"There is no file {ref.path}")
    try:
        files = source_files(ref.path)
        if (doubt := _distrusted(ref, files)) is not None:
            return CannotLoad(ref, doubt)
        source = _hash(files, ref)
        module = _import(ref.path, source)
        workflow = getattr(module, ref.attribute, None)
        if not isinstance(workflow, Workflow):
            file = ref.path.name
            return CannotLoad(ref, f"{file} has no workflow called {ref.attribute}{_has(module, file)}")
        wrong = mistakes(workflow)
        if wrong:
            return CannotLoad(ref, " ".join(wrong), workflow=workflow)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the file raises is why it cannot be loaded
        return CannotLoad(ref, f"{type(error).__name__}: {error}", _trace(error, ref.path.parent))
    workflow.version = workflow.version_of([source])  # what it declares may also depend on what lies elsewhere
    workflow.origin, workflow.ref = ref.source, ref
    workflow.config = {} if ref.config is None else ref.config
    if ref.auto_fix is not None:
        workflow.auto_fix, workflow.auto_fix_apply = ref.auto_fix, ref.auto_fix_apply
        workflow.auto_fix_env = ref.auto_fix_env
    return workflow


def _distrusted(ref: FileRef, files: Iterable[str]) -> str | None:
    """Why the code of these files must not run here; None where nobody else can have written it."""
    folder = ref.path.parent
    for name in files:
        if (reason := distrust_below(folder / name, folder, named_by=ref.named_by)) is not None:
            return f"{folder / name} is not used because {reason}: {ADVICE}"
    return None


def _has(module: ModuleType, file: str) -> str:
    """What to write instead, where the file has workflows under other names."""
    names = [f"{file}:{name}" for name, value in vars(module).items() if isinstance(value, Workflow)]
    return f": write {' or '.join(names)}" if names else ""


def _trace(error: BaseException, folder: Path) -> str:
    """The lines of the author's own files that led to the error."""
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(folder)
    ]
    return "".join([*traceback.format_list(frames), *traceback.format_exception_only(error)])[-MAX_TRACE:]


def source_files(path: Path) -> dict[str, bytes]:
    """The file and all it imports from its own folder, by their place in it."""
    found: dict[str, bytes] = {}
    ahead = [path]
    while ahead:
        file = ahead.pop()
        name = str(file.relative_to(path.parent)) if file.is_relative_to(path.parent) else file.name
        if name in found:
            continue
        found[name] = file.read_bytes()
        ahead += [near for module in _imported(found[name]) for near in _beside(path.parent, module)]
    return found


def _imported(source: bytes) -> set[str]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return set()
    found = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.ImportFrom):  # from . import helpers
            found |= {alias.name for alias in node.names}
    return found


def _beside(folder: Path, module: str) -> list[Path]:
    """The files of a module that lies in the folder; the whole of a package."""
    top = module.partition(".")[0]
    if (folder / f"{top}.py").is_file():
        return [folder / f"{top}.py"]
    package = folder / top
    return sorted(package.rglob("*.py")) if (package / "__init__.py").is_file() else []


def _hash(files: Mapping[str, bytes], ref: FileRef) -> str:
    found = hashlib.sha256(repr((ref.attribute, ref.config)).encode())
    for name in sorted(files):
        found.update(name.encode() + b"\0" + files[name] + b"\0")
    return found.hexdigest()[:16]


# -- private names ----------------------------------------------------------------------------------------------------


def _import(path: Path, version: str) -> ModuleType:
    """The file as a private module."""
    place = hashlib.sha256(str(path).encode()).hexdigest()[:8]
    parent = f"_wakeful_workflow_{place}_{version}"
    _forget(parent)
    package = ModuleType(parent)
    package.__path__ = [str(path.parent)]
    sys.modules[parent] = package
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    try:
        return importlib.import_module(f"{parent}.{path.stem}")
    except BaseException:
        _forget(parent)
        raise


def _forget(parent: str) -> None:
    for name in [name for name in sys.modules if name == parent or name.startswith(f"{parent}.")]:
        del sys.modules[name]


class _Finder:
    """Finds modules below a private package, in that package's folder."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not name.startswith("_wakeful_workflow_") or path is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _WorkflowLoader(spec.loader.name, spec.loader.path)
        return spec


class _WorkflowLoader(importlib.machinery.SourceFileLoader):
    """Compiles what the file says now, and resolves its imports in its own folder first."""

    def get_code(self, fullname: str) -> Any:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)

    def exec_module(self, module: ModuleType) -> None:
        parent = module.__name__.partition(".")[0]
        folder = Path(sys.modules[parent].__path__[0])

        def find(
            name: str, globals_: Any = None, locals_: Any = None, fromlist: Sequence[str] | None = (), level: int = 0
        ) -> Any:
            if level or not _beside(folder, name):
                return builtins.__import__(name, globals_, locals_, fromlist or (), level)
            found = importlib.import_module(f"{parent}.{name}")
            if not fromlist:
                return sys.modules[f"{parent}.{name.partition('.')[0]}"]
            for part in fromlist:
                if not hasattr(found, part) and importlib.util.find_spec(f"{parent}.{name}.{part}") is not None:
                    importlib.import_module(f"{parent}.{name}.{part}")
            return found

        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": find}
        super().exec_module(module)
