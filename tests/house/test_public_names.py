"""What `import wakeful` offers: complete, sorted, typed and documented."""

from __future__ import annotations

import inspect

import pytest

import wakeful

PROMISED = {
    "After", "Cron", "Defer", "Every", "Interval", "IntervalParseError", "InvalidTrigger", "JobExists", "JobNotFound",
    "NewJob", "Noop", "Once", "ScheduleTriggerError", "Scheduler", "SchedulerError", "SchedulerShutdownError", "Skip",
    "parse_interval", "Reply", "Turn",
}  # fmt: skip


def callables():
    """Every public function, and of every public class the class and its public methods, by dotted name."""
    for name in wakeful.__all__:
        value = getattr(wakeful, name)
        if inspect.isfunction(value):
            yield name, value
        elif inspect.isclass(value):
            methods = {key: inspect.unwrap(method) for key, method in inspect.getmembers(value, inspect.isfunction)}
            yield from ((f"{name}.{key}", method) for key, method in methods.items() if not key.startswith("_"))


def test_the_names_of_the_contract_are_there():
    assert PROMISED - set(wakeful.__all__) == set()


def test_the_list_is_sorted_and_says_nothing_twice():
    assert list(wakeful.__all__) == sorted(set(wakeful.__all__))


def test_every_public_name_has_a_docstring_of_its_own():
    values = {name: getattr(wakeful, name) for name in wakeful.__all__}
    texts = {name: value.__doc__ or "" for name, value in values.items() if callable(value)}
    # A dataclass without one makes up its signature as a docstring.
    assert [name for name, text in texts.items() if not text.strip() or text.startswith(f"{name}(")] == []


def test_every_public_call_is_typed():
    untyped = [
        f"{name}: {parameter}"
        for name, function in callables()
        for parameter in [*inspect.signature(function).parameters, "return"]
        if parameter not in {"self", "cls", *function.__annotations__}
    ]
    assert untyped == []


def test_asking_for_a_name_that_is_not_there_says_so():
    with pytest.raises(AttributeError, match="no_such_name"):
        wakeful.no_such_name  # noqa: B018 - reading it is the test
