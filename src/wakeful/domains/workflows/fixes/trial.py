"""Loading an approved correction for the first time: in a process of its own, from a folder of its own.

The environment of that process is clean, so that code which takes more than was seen in it finds no secrets there.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from wakeful.child_processes import EnvironmentList, Finished, TookTooLong, run_to_end
from wakeful.domains.workflows.fixes.hook import NoAnswer
from wakeful.domains.workflows.loading import CannotLoad, FileRef, load_file

LIMIT_S = 60.0
_CHILD = """
import json, sys
given = json.load(sys.stdin)
sys.path[:] = given["path"]
from wakeful.domains.workflows.fixes.trial import report
report(given)
"""


class Trial(NamedTuple):
    """What a correction turned out to be: the name of its workflow, and its version."""

    name: str
    version: str


def try_out(ref: FileRef, files: Mapping[str, str], env: EnvironmentList) -> Trial:
    """Load the workflow from these texts; NoAnswer where that fails or takes longer than a minute."""
    with tempfile.TemporaryDirectory(prefix="wakeful-fix-") as name:
        folder = Path(name).resolve()
        for file, text in files.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text, encoding="utf-8")
        given = {
            "path": [str(Path(place).absolute()) for place in sys.path],  # as here: the environment does not say it
            "file": str(folder / ref.path.name),
            "attribute": ref.attribute,
            "config": ref.config,
        }
        argv = [sys.executable, "-I", "-B", "-c", _CHILD]
        try:
            return _read(run_to_end(argv, env=env.environment(), stdin=json.dumps(given).encode(), seconds=LIMIT_S))
        except OSError as error:
            raise NoAnswer(f"the correction cannot be loaded: no process could be started ({error.strerror})") from None
        except TookTooLong:
            raise NoAnswer(f"the correction cannot be loaded: that takes longer than {LIMIT_S:g} s") from None


def _read(ended: Finished) -> Trial:
    try:
        found: dict[str, Any] = json.loads(ended.output)
    except ValueError:
        last = ended.errors.decode("utf-8", "replace").strip().splitlines()[-1:]
        said = "".join(f": {line}" for line in last)
        raise NoAnswer(f"the correction cannot be loaded: its process ended with {ended.exit_code}{said}") from None
    if "wrong" in found:
        raise NoAnswer(f"the correction cannot be loaded: {found['wrong']}")
    return Trial(str(found["name"]), str(found["version"]))


def report(given: Mapping[str, Any]) -> None:
    """Called in the child: load the file and print what it is. What the file prints itself goes to standard error."""
    answer = os.dup(1)
    os.dup2(2, 1)
    found = load_file(FileRef(Path(given["file"]), given["attribute"], given["config"]))
    said = (
        {"wrong": found.message[:2000]}
        if isinstance(found, CannotLoad)
        else {"name": found.name, "version": found.code_version()}
    )
    os.write(answer, json.dumps(said).encode())
