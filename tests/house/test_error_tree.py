"""Every error of the package stands in the tree that errors.py draws, under the error it is a child of."""

from __future__ import annotations

import ast
import inspect
import re

from tests.house.source import modules
from wakeful import JobNotFound, NotFound, RunNotFound, SchedulerError, errors

LINE = re.compile(r"^((?:│ {3}| {4})*)[├└]── (\w+) +(?:\(also \w+\) +)?([a-z_]+(?:/[a-z_]+)+)?")


def drawn():
    """name -> (parent, module) as the drawing has it; errors.py where it names no module."""
    above, found = ["SchedulerError"], {"SchedulerError": (None, "errors")}
    for line in inspect.getdoc(errors).splitlines():
        if match := LINE.match(line):
            depth, name = len(match[1]) // 4 + 1, match[2]
            assert name not in found
            found[name] = (above[depth - 1], match[3] or "errors")
            above[depth:] = [name]
    return found


def defined():
    """name -> (parent, module) as the source has it."""
    classes = [
        (node.name, [base.id for base in node.bases if isinstance(base, ast.Name)], module.name)
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
    ]
    found = {"SchedulerError": (None, "errors")}
    while more := {
        name: (bases[0], re.sub(r"^wakeful\.(domains\.|surfaces\.)?", "", module).replace(".", "/"))
        for name, bases, module in classes
        if bases and bases[0] in found and name not in found
    }:
        found |= more
    return found


def test_the_drawing_and_the_source_have_the_same_errors():
    assert drawn() == defined()


def test_missing_things_are_reported_alike():
    family = [kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, NotFound)]
    assert {(kind.exit_code, kind.status, kind.code) for kind in family} == {(3, 404, "not_found")}
    assert {kind.__name__ for kind in family if not issubclass(kind, JobNotFound)} == {
        "NotFound", "TokenNotFound", "NodeNotFound", "AlertNotFound", "StoreNotFound", "DeliveryNotFound",
        "AgentNotFound", "LimitNotFound", "WorkNotFound", "RequestNotFound",
        "ConnectorNotFound", "ActionNotFound", "SlotNotFound",
    }  # fmt: skip


def test_catching_missing_jobs_catches_missing_runs_too():
    assert issubclass(RunNotFound, JobNotFound)
    assert issubclass(NotFound, SchedulerError)
    assert issubclass(NotFound, LookupError)
