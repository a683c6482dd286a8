"""docs/several-machines.md: its commands do what it shows, its numbers are those of the code."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.test_documentation import first_words
from tests.store.postgres_server import postgres_url
from wakeful.kernel.loop.sweep import NO_HANDLER_GRACE_MS
from wakeful.kernel.rules.lease_times import LeaseTimes
from wakeful.kernel.rules.outcome import MAX_OUTPUT
from wakeful.store import postgres, postgres_database, postgres_writer, writer
from wakeful.surfaces.cli import command_tree

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "several-machines.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(console|text)\n(.*?)```", PAGE, re.DOTALL)
WRITTEN = "postgresql://wakeful@db/wakeful"


@pytest.mark.promise("X2")
def test_what_the_page_shows_is_what_happens(terminal):
    url = postgres_url()
    shown = 0
    for kind, block in BLOCKS:
        first, _, rest = block.partition("\n")
        if kind == "text":
            for line in re.findall(r"^\$ wakeful (serve .*)$", block, re.MULTILINE):
                terminal.serve(*shlex.split(line)[1:], "--port", "0", "--db", url)
            continue
        argv = [url if word == WRITTEN else word for word in shlex.split(first)[2:]]
        answer = terminal.ask(*argv, *(["--db", url] if argv[0] == "node" else []))
        said = set(first_words(answer.out) + first_words(answer.err))
        assert set(first_words(rest)) <= said, first
        assert answer.code == 0, first
        shown += 1
    assert shown == 5


def test_every_command_on_the_page_is_there():
    lines = re.findall(r"\$ wakeful ([^\n]+)", PAGE)
    for name, *words in (shlex.split(line) for line in lines):
        command = command_tree().commands[name]
        if hasattr(command, "commands"):
            command = command.commands[words.pop(0)]
        known = {flag for parameter in command.params for flag in parameter.opts}
        ours = words[: words.index("--")] if "--" in words else words
        assert {word for word in ours if word.startswith("-")} <= known


def test_the_numbers_on_the_page_are_those_of_the_code():
    beat, lease, margin, stalled, given_up = LeaseTimes()
    statement, lock = (
        postgres_writer._SETTINGS[name].removesuffix("s") for name in ("statement_timeout", "lock_timeout")
    )
    for said in (
        f"A node beats every {beat // 1000} seconds. After {lease // 1000} seconds of silence",
        f"within {(lease + beat) // 1000} seconds its runs are `crashed`",
        f"after {(lease - margin) // 1000} seconds without a confirmed beat",
        f"After {stalled // 1000} seconds `node list` says `stalled`",
        f"after {given_up // 60_000} minutes the others take over",
        f"given up after {statement} seconds, a lock after {lock}",
        f"at most {3 + writer.READERS}: one that writes, one that beats, one that listens, two that read",
        f"a look for changes every second{'' if postgres.LOOK_MS == 1000 else '?'}",
        f"over {MAX_OUTPUT // 1024} KiB",
        f"PostgreSQL {postgres_database.OLDEST_SERVER // 10_000} or later",
    ):
        assert said in " ".join(PAGE.split()), said
    assert NO_HANDLER_GRACE_MS == 60_000  # "after a minute there is an alert"


def test_the_pages_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE):
        assert (DOCS / target).exists(), target
