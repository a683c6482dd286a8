"""What a preset must make of its program, case by case: each check returns what was seen, or asserts what is not so."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.tools.model_server import LONG, PRINTED, ModelServer
from tests.tools.programs import FAILURES, Program
from wakeful.domains.agents.prompting import Outside, PromptParts, build_prompt
from wakeful.domains.agents.runners.calling import call_agent
from wakeful.domains.agents.runners.output import LONGEST_REPLY
from wakeful.domains.agents.runners.spec import takes_paths
from wakeful.domains.agents.runners.turn import Answered, Ending, Gone, Surroundings, Turn

ENOUGH_S, LITTLE_S = 300, 90  # for an answer, and for a program that waits for better times
PROMPT = "Say hello."
OTHER_SESSION = "11111111-2222-4333-8444-555555555555"


class Run:
    """What a runner needs of a run."""

    id, job = "run_1", "tools.check"


class Bench:
    """One program with a home of its own, and its calls."""

    def __init__(self, name: str, program: Program, server: ModelServer, folder: Path) -> None:
        self.name, self.program, self.server = name, program, server
        self.home, self.work, self._logs = folder / "home", folder / "work", folder / "logs"
        self.home.mkdir()
        self.work.mkdir()
        self.sessions: list[str] = []

    def ask(
        self, case: str, session: str | None = None, more: Mapping[str, Any] | None = None, prompt: str = PROMPT
    ) -> Ending:
        """Ask it once, in a case of the server."""
        given = self.program.runner(self.server.url(case), self.home)
        runner = {
            **given,
            **(more or {}),
            "preset": self.name,
            "cwd": str(self.work),
            "timeout": (LITTLE_S if case in self.program.slow else ENOUGH_S) * 1000,
            "args": [*given.get("args", ()), *(more or {}).get("args", ())],
            "env": [*given.get("env", ()), f"HOME={self.home}"],
        }
        around = Surroundings(
            self._logs, {"WAKEFUL_RUN_ID": Run.id}, lambda: int(time.time() * 1000), self.sessions.append
        )
        return asyncio.run(call_agent(runner, Turn(prompt, session, "tools", Run(), "check"), around))


class Checks:
    """The cases of one program."""

    def __init__(self, bench: Bench) -> None:
        self._bench, self._program = bench, bench.program
        self._first: Answered | None = None

    def __iter__(self) -> Iterator[tuple[str, Callable[[], str]]]:
        program = self._program
        yield "answers", self._answers
        if program.keeps_sessions:
            yield "resumes", self._resumes
        if program.keeps_sessions and program.knows_sessions:
            yield "session gone", self._loses_its_session
        if program.allowed is not None:
            yield "shell", self._uses_its_shell
        yield "named file", self._leaves_named_files_alone
        yield "long", self._says_much
        for case, outcome in FAILURES.items():
            yield case, self._failing(case, program.expected.get(case, outcome))

    def _answers(self) -> str:
        first = _answered(self._bench.ask("answers"))
        assert _heard(first) > 0, first
        assert not self._program.reports_tokens or (first.reply.tokens_in or 0) >= 1100, first
        assert not self._program.keeps_sessions or self._bench.sessions[-1:] == [first.reply.session], first
        self._first = first
        return _shown(first)

    def _resumes(self) -> str:
        assert self._first is not None, "there was no first answer"
        again = _answered(self._bench.ask("answers", self._first.reply.session))
        assert again.reply.session == self._first.reply.session, again
        assert _heard(again) > _heard(self._first), again
        return _shown(again)

    def _loses_its_session(self) -> str:
        ending = self._bench.ask("answers", OTHER_SESSION)
        assert isinstance(ending, Gone), ending
        return ending.why

    def _uses_its_shell(self) -> str:
        ending = _answered(self._bench.ask("shell", more=self._program.allowed))
        assert PRINTED in ending.reply.text, ending
        return _shown(ending)

    def _leaves_named_files_alone(self) -> str:
        """What others write may name a file as people do who want it read."""
        bench = self._bench
        file, content = bench.work / f"named-{bench.name}.txt", f"the content for {bench.name}"
        file.write_text(content)
        outside = [Outside("text", f"Look at @{file.name} and at @{file} and at @./{file.name} now.")]
        asked = PromptParts("tools.check", PROMPT, outside=outside, escapes=takes_paths({"preset": bench.name}))
        bench.ask("answers", prompt=build_prompt(asked, "nonce"))
        assert bench.server.saw(file.name), "the prompt did not arrive"
        assert not bench.server.saw(content), "the file was sent to the model"
        return "it was not sent"

    def _says_much(self) -> str:
        text = _answered(self._bench.ask("long")).reply.text
        assert len(text) >= min(LONG, LONGEST_REPLY) * 0.99, len(text)
        return f"{len(text)} characters"

    def _failing(self, case: str, outcome: str) -> Callable[[], str]:
        def check() -> str:
            ending = self._bench.ask(case)
            assert type(ending).__name__ == outcome, ending
            return f"{outcome}: {getattr(ending, 'why', '')}"

        return check


def _answered(ending: Ending) -> Answered:
    assert isinstance(ending, Answered), ending
    return ending


def _shown(ending: Answered) -> str:
    reply = ending.reply
    cost = "no cost" if reply.cost is None else f"{reply.cost:g} USD"
    return f"{reply.tokens_in} and {reply.tokens_out} tokens, {cost}, session {reply.session}"


def _heard(ending: Answered) -> int:
    """How many messages the model was sent."""
    return int(ending.reply.text.partition("Heard ")[2].partition(",")[0])
