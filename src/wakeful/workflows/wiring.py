"""Mistakes in how a workflow is put together, found before anything runs. Pure."""

from __future__ import annotations

import inspect

from wakeful.child_processes import Listed
from wakeful.workflows.authoring import Consumer, Handler, Workflow, with_state


def mistakes(workflow: Workflow) -> list[str]:
    """What makes the workflow unusable, one sentence each."""
    if not workflow.handlers:
        return [f"{workflow.name} has no handlers: add a producer or a consumer."]
    return [*_of_hook(workflow), *(line for handler in workflow.handlers.values() for line in _of_handler(handler))]


def warnings(workflow: Workflow) -> list[str]:
    """What is probably a mistake: a topic that no handler publishes, so that only people can."""
    if any(handler.publishes is None and _can_publish(handler) for handler in workflow.handlers.values()):
        return []  # who does not say what it publishes may publish anything
    published = {topic for handler in workflow.handlers.values() for topic in handler.publishes or ()}
    return [
        f"No handler publishes the topic {topic}, which {handler.name} subscribes to."
        for handler in workflow.handlers.values()
        for topic in handler.subscribes
        if topic not in published
    ]


def _of_hook(workflow: Workflow) -> list[str]:
    given = workflow.auto_fix_env
    try:
        if isinstance(given, list | tuple):
            Listed.read(given)
            return []
    except ValueError:
        pass
    return [f"auto_fix_env is a list of NAME, which is passed on, and NAME=value, not {given!r:.80}."]


def _can_publish(handler: Handler) -> bool:
    return not isinstance(handler, Consumer) or handler.on_next is not None


def _of_handler(handler: Handler) -> list[str]:
    found = []
    for name, (function, count) in handler.functions().items():
        label = handler.name if name == "producer" else f"{handler.name}.{name}"
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            found.append(f"{label} has a `yield`, so that a call of it does nothing: return the result instead.")
        elif not _takes(with_state(function, None) if name == "next" else function, count):
            wanted = {"next": "(ctx, prepared, result)", "mutate": "(ctx, prepared)", "reconcile": "(ctx, prepared)"}
            found.append(f"{label} has the wrong arguments: it is called with {wanted.get(name, '(ctx, state)')}.")
    if isinstance(handler, Consumer):
        if handler.on_prepare is None:
            found.append(f"{handler.name} has no prepare: add one with @{handler.name}.prepare.")
        if handler.on_reconcile is not None and handler.on_mutate is None:
            found.append(f"{handler.name} has reconcile and no mutate: add mutate, or drop reconcile.")
    return found


def _takes(function: object, count: int) -> bool:
    try:
        inspect.signature(function).bind(*[None] * count)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True
