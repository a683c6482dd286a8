"""Writes docs/reference.md, the Python reference, from the signatures and docstrings of what is public."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, is_typeddict

import wakeful
import wakeful.testing
from wakeful.kernel.rules.option_fields import INTERNAL, OPTIONS
from wakeful.scheduler.workflows import Workflows

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference.md"
INTRODUCTION = (
    "Everything that `import wakeful` offers. Start with the [Python guide](python.md). This page is made from the "
    "docstrings by `make reference`."
)

GROUPS: dict[str, tuple[str, ...]] = {
    "Scheduler": ("Scheduler",),
    "Jobs and options": ("NewJob", "JobOptions", "JobChanges"),
    "Triggers": (
        "Trigger", "Every", "Interval", "Cron", "Once", "After", "Manual", "Chat", "Ping", "Webhook", "ActiveHours",
        "when", "parse_interval",
    ),
    "How a handler ends": ("Skip", "Noop", "Defer", "Wait", "ApprovalNeeded", "TransientError"),
    "Agents": ("Turn", "Reply"),
    "Workflows": (
        "Workflow", "Context", "Prepared", "StepFailed", "MutationResult", "Applied", "NotApplied", "Unknown",
        "LogicError",
    ),
    "Records": (
        "Job", "Run", "RunStats", "Explanation", "Event", "Alert", "Token", "Node", "SchedulerState", "Summary",
        "Verdict", "Action", "Undone", "Ledger", "Tally", "Slot",
    ),
    "Settings": ("Retention", "Tuning"),
}  # fmt: skip

#: What is built on the scheduler uses these; they are described in docs/extending.md.
_HELP = {field.name: field.help for field in (*OPTIONS, *INTERNAL)}
"""What options of jobs mean."""
FOR_DOMAINS = frozenset({
    "transact", "look", "accompany", "clock", "handled_kinds", "node_id", "default_zone", "job_defaults", "drafted",
    "hidden_kinds", "server_side", "before_start", "kinds", "new_id",
})  # fmt: skip

#: Methods of triggers and clocks for the engine, in milliseconds.
INSIDE = {
    "Trigger": frozenset({
        "next_slot", "upcoming_slots", "due_ms", "latest_slot", "count_slots", "closed_slots", "period_at",
        "min_gap_ms", "resolved", "own_zone", "lacks", "unended", "expects",
    }),
    "VirtualClock": frozenset({"now", "boot", "boot_us", "until", "monotonic"}),
}  # fmt: skip


def render() -> str:
    """The whole page."""
    parts = ["# Python reference", INTRODUCTION]
    for title, names in GROUPS.items():
        parts.append(f"## {title}")
        for name in names:
            parts += _entry(name, getattr(wakeful, name))
        parts += _part("workflows", Workflows) if title == "Workflows" else ()
    parts += ["## Errors", *_errors()]
    parts += ["## wakeful.sync", _prose(wakeful.sync.__doc__)]
    parts += ["## wakeful.testing", _prose(wakeful.testing.__doc__)]
    parts += ["### wakeful.testing.VirtualClock", *_methods(wakeful.testing.VirtualClock, level="####")]
    parts += [f"### wakeful.testing.run\n\n{_code(_signature('run', wakeful.testing.run))}"]
    parts += [_prose(wakeful.testing.run.__doc__)]
    tested = wakeful.testing.WorkflowTest
    parts += [f"### wakeful.testing.WorkflowTest\n\n{_code(_signature('WorkflowTest', tested.__init__))}"]
    parts += [_prose(tested.__doc__), *_methods(tested, level="####")]
    return "\n\n".join(part for part in parts if part) + "\n"


def _entry(name: str, value: Any) -> Iterator[str]:
    yield f"### {name}"
    if inspect.isfunction(value):
        yield _code(_signature(name, value))
        yield _prose(value.__doc__)
        return
    own_init = (
        inspect.isfunction(value.__init__) and not issubclass(value, (tuple, dict)) and name not in {"Job", "Run"}
    )
    if own_init and not inspect.isabstract(value) and not getattr(value, "_is_protocol", False):
        yield _code(_signature(name, value.__init__))
    yield _prose(value.__doc__)
    rows = list(_fields(value))
    if rows:
        yield "\n".join(["| | type | |", "|---|---|---|", *rows])
    if name == "Trigger" or not issubclass(value, wakeful.Trigger):
        yield from _methods(value, level="####")


def _part(name: str, cls: type) -> Iterator[str]:
    """An object on the scheduler."""
    yield f"### scheduler.{name}"
    yield _prose(cls.__doc__)
    yield from _methods(cls, level="####")


def _fields(cls: type) -> Iterator[str]:
    """One row per annotated field or property, with what its docstring says."""
    if is_typeddict(cls) or issubclass(cls, tuple):
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
        assert isinstance(tree, ast.ClassDef)  # noqa: S101 - it is the source of a class
        for base in (ast.unparse(base) for base in tree.bases):
            if base in wakeful.__all__:
                yield f"| all of | [`{base}`](#{base.lower()}) | |"
        for node, following in zip(tree.body, [*tree.body[1:], None], strict=True):
            if isinstance(node, ast.AnnAssign):
                documented = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
                said = " ".join(str(following.value.value).split()) if documented else ""  # type: ignore[union-attr]
                name = ast.unparse(node.target)
                yield _row(
                    name,
                    ast.unparse(node.annotation),
                    said or (_HELP.get(name, "") if cls is wakeful.JobOptions else ""),
                )
    elif cls.__name__ in {"Job", "Run"}:
        for name, member in vars(cls).items():
            if isinstance(member, property) and not name.startswith("_"):
                assert member.fget is not None  # noqa: S101 - a property that can be read
                yield _row(name, member.fget.__annotations__["return"], (member.__doc__ or "").partition("\n")[0])


def _row(name: str, annotation: str, said: str) -> str:
    kept = annotation.replace("|", "\\|")
    return f"| `{name}` | `{kept}` | {said} |".replace("  |", " |")


def _methods(cls: type, level: str) -> Iterator[str]:
    for name, member in _members(cls):
        if isinstance(member, (property, functools.cached_property)):
            if cls not in (wakeful.Scheduler, wakeful.Context, wakeful.testing.WorkflowTest):
                continue
            yield f"{level} {name}\n\n{_prose(member.__doc__)}"
        else:
            yield f"{level} {name}\n\n{_code(_signature(name, member))}\n\n{_prose(member.__doc__)}".rstrip()


def _members(cls: type) -> Iterator[tuple[str, Any]]:
    """Public methods in the order in which they are written, those of the first base first."""
    shown = set(FOR_DOMAINS | INSIDE.get(cls.__name__, frozenset()))
    for base in [cls, *(base for base in cls.__mro__[1:] if base.__module__.startswith("wakeful."))]:
        for name, member in vars(base).items():
            if (
                name.startswith("_")
                or name in shown
                or not (inspect.isfunction(member) or isinstance(member, (property, functools.cached_property)))
            ):
                continue
            shown.add(name)
            yield name, member


def _signature(name: str, function: Any) -> str:
    """A call as it is written in code, without `self`."""
    marks: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    signature = inspect.signature(function)
    parts: list[str] = []
    starred = False
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        starred = starred or parameter.kind is parameter.VAR_POSITIONAL
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        text = f"{marks.get(parameter.kind, '')}{parameter.name}: {parameter.annotation}"
        parts.append(text if parameter.default is parameter.empty else f"{text} = {parameter.default!r}")
    result = "" if function.__name__ == "__init__" else f" -> {signature.return_annotation}"
    prefix = "await " if inspect.iscoroutinefunction(function) else ""
    line = f"{prefix}{name}({', '.join(parts)}){result}"
    return (
        line if len(line) <= 100 else f"{prefix}{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){result}"
    )


def _prose(docstring: str | None) -> str:
    """A docstring as Markdown: sessions and indented programs become code."""
    paragraphs = inspect.cleandoc(docstring or "").split("\n\n")
    found: list[tuple[bool, str]] = []
    for paragraph in paragraphs:
        is_code = paragraph.startswith((">>>", "    "))
        text = textwrap.dedent(paragraph) if paragraph.startswith(">>>") else paragraph
        if is_code and found and found[-1][0]:
            found[-1] = (True, f"{found[-1][1]}\n\n{text}")
        else:
            found.append((is_code, text))
    return "\n\n".join(_code(textwrap.dedent(text)) if is_code else text for is_code, text in found)


def _code(text: str) -> str:
    return f"```python\n{text}\n```"


def _errors() -> Iterator[str]:
    """The public errors, each below the one it is a case of."""
    public = [value for name in wakeful.__all__ if _is_error(value := getattr(wakeful, name))]
    lines = ["| error | is a | |", "|---|---|---|"]
    for error in public:
        bases = ", ".join(f"`{base.__name__}`" for base in error.__bases__)
        lines.append(f"| `{error.__name__}` | {bases} | {' '.join(inspect.cleandoc(error.__doc__ or '').split())} |")
    yield "\n".join(lines)


def _is_error(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, wakeful.SchedulerError)


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    print(f"wrote {PAGE.name}")
