"""Mistakes in how a workflow is put together, found before anything runs. Pure."""

from __future__ import annotations

import inspect

from wakeful.child_processes import EnvironmentList
from wakeful.domains.workflows.authoring import Consumer, Handler, Workflow, with_state
from wakeful.domains.workflows.steps.authoring import StepHandler


def mistakes(workflow: Workflow) -> list[str]:
    """What makes the workflow unusable, one sentence each."""
    if not workflow.handlers:
        return [f"{workflow.name} has no handlers: add a producer or a consumer."]
    return [
        *_of_hook(workflow),
        *_of_topics(workflow),
        *(line for handler in workflow.handlers.values() for line in _of_handler(handler)),
    ]


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
            EnvironmentList.read(given)
            return []
    except ValueError:
        pass
    return [f"auto_fix_env is a list of NAME, which is passed on, and NAME=value, not {given!r:.80}."]


def _of_topics(workflow: Workflow) -> list[str]:
    """A topic of a handler with steps is its alone: each of its events is worked on once, in order."""
    found = []
    for one in workflow.handlers.values():
        others = [other.name for other in workflow.handlers.values() if other is not one]
        shared = [name for name in others if set(workflow.handlers[name].subscribes) & set(one.subscribes)]
        if isinstance(one, StepHandler) and shared:
            found.append(
                f"{one.name} and {shared[0]} both work on {one.subscribes[0]}: a topic with a handler that has steps "
                "has no other one. Publish into a topic for each."
            )
    return found


def _can_publish(handler: Handler) -> bool:
    return not isinstance(handler, Consumer) or handler.on_next is not None


def _of_handler(handler: Handler) -> list[str]:
    found = []
    for name, (function, count) in handler.functions().items():
        label = handler.name if name in ("producer", "steps") else f"{handler.name}.{name}"
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            found.append(f"{label} has a `yield`, so that a call of it does nothing: return the result instead.")
        elif not _takes(with_state(function, None) if name == "next" else function, count):
            wanted = {
                "steps": "(ctx, event)",
                "next": "(ctx, prepared, result), or (ctx, prepared, result, state)",
                "mutate": "(ctx, prepared)",
                "reconcile": "(ctx, prepared)",
            }
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
    except (TypeError, ValueError):  # a class of C code does not say what it takes
        return False
    return True
