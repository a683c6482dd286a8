"""The version of a workflow whose source cannot be read: the same in every process, and another one for other code."""

from __future__ import annotations

import functools
import os
import subprocess
import sys

import pytest

from wakeful import Interval, Workflow

TYPED = """
from wakeful import Interval, Workflow
workflow = Workflow("typed")

@workflow.producer(Interval("1h"))
async def poll(ctx, state, most=3):
    def is_wanted(name):
        return name in {"a", "b", "c", "d", "e"}

    for name in [one for one in "abc" if is_wanted(one)]:
        await ctx.publish("mail", message_id=name)

@workflow.on("mail", key=lambda event: event.payload)
async def read(ctx, event):
    await ctx.step("read", print, event)
"""
PRINTS = "import sys; known = {}; exec(sys.argv[1], known); print(known['workflow'].code_version())"


def in_another_process(code: str, seed: int) -> str:
    """The version there, where texts have other hashes and code has other addresses."""
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    return subprocess.run(
        [sys.executable, "-c", PRINTS, code], env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()


def version_of(code: str) -> str:
    known: dict[str, object] = {}
    exec(code, known)  # noqa: S102 - a workflow that was typed at a prompt has no file either
    workflow = known["workflow"]
    assert isinstance(workflow, Workflow)
    return workflow.code_version()


@pytest.mark.promise("K1", "K14")
def test_code_without_a_file_has_the_same_version_in_every_process():
    here = version_of(TYPED)
    assert [in_another_process(TYPED, seed) for seed in (1, 2)] == [here, here]


@pytest.mark.promise("K1")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("ctx.publish(", "ctx.register_input("),
        ('"e"}', '"f"}'),
        ("most=3", "most=4"),
        ("event.payload", "event.message_id"),
        ("return name in", "return name not in"),
        ("one for one", "one * 2 for one"),
    ],
)
def test_other_code_without_a_file_is_another_version(before, after):
    changed = TYPED.replace(before, after)
    assert changed != TYPED
    assert version_of(changed) != version_of(TYPED)


async def found_in(folder, ctx, state):
    return {"folder": folder}


class Poll:
    def __init__(self, most: int) -> None:
        self.most = most

    async def __call__(self, ctx, state):
        return {"most": self.most}


class OtherPoll(Poll):
    async def __call__(self, ctx, state):
        return {"less": self.most}


def polled_by(function) -> str:
    workflow = Workflow("polled")
    workflow.producer(Interval("1h"), name="poll")(function)
    return workflow.code_version()


@pytest.mark.promise("K1")
def test_a_function_with_given_arguments_and_an_object_that_is_called_have_the_version_of_their_code():
    one, other = functools.partial(found_in, "inbox"), functools.partial(found_in, "archive")
    assert polled_by(one) == polled_by(functools.partial(found_in, "inbox"))
    assert polled_by(one) != polled_by(other)
    assert polled_by(Poll(1)) == polled_by(Poll(1))
    assert polled_by(Poll(1)) != polled_by(OtherPoll(1))
    assert polled_by(Poll(1).__call__) != polled_by(OtherPoll(1).__call__)
    assert polled_by(print) != polled_by(repr)
