"""The handler of kind `agent`: asks an agent once, in its session, and says what came of it."""

from __future__ import annotations

import asyncio
import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wakeful import ids
from wakeful.clock import ManualClock
from wakeful.domains.agents.finishing import output_of
from wakeful.domains.agents.hours import opening
from wakeful.domains.agents.inbound.payloads import ON_MESSAGE, ON_WEBHOOK, fill, values_in
from wakeful.domains.agents.inbound.sections import overridden
from wakeful.domains.agents.kept_session import StoredSession, forget, keep, kept_for, see, token_of
from wakeful.domains.agents.limits.holding import meet_limit
from wakeful.domains.agents.limits.rules import ends_at
from wakeful.domains.agents.naming import VARIABLE, wake_job
from wakeful.domains.agents.prompting import Outside, PromptParts, build_prompt
from wakeful.domains.agents.runners.calling import call_agent
from wakeful.domains.agents.runners.session_server import SessionServers
from wakeful.domains.agents.runners.spec import limited_as, preset_of, program_of, takes_paths
from wakeful.domains.agents.runners.turn import (
    Answered,
    CallFailed,
    Ending,
    Gone,
    Limited,
    Overloaded,
    Reply,
    Surroundings,
    Turn,
)
from wakeful.domains.agents.runners.usage import usage_of, with_earlier
from wakeful.domains.agents.self_scheduling.running import sender_in
from wakeful.domains.agents.senders.feeding import is_fed
from wakeful.domains.agents.senders.tables import Senders
from wakeful.domains.agents.senders.trusting import OWN, is_request
from wakeful.domains.agents.sources import Claims
from wakeful.domains.agents.talking import number_of
from wakeful.domains.agents.wakes import DISABLED, add_event, wake_unless_disabled
from wakeful.domains.agents.waking import CAUSED
from wakeful.errors import InvalidJob
from wakeful.kernel.model.run import Run
from wakeful.kernel.rules.approval import APPROVED
from wakeful.kernel.rules.outcome import ApprovalNeeded, Defer, Failed, Noop, Output, Skip, TransientError, Wait
from wakeful.triggers.moments import from_ms
from wakeful.trust import ADVICE, distrust_below

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction

LONGEST_FILE = 256 * 1024
BY_TIME = ("schedule", "catch_up")
TOKEN = "WAKEFUL_TOKEN"  # noqa: S105 - the variable's name
FOR_WORK = (None, "cron", "retry")  # why a run starts that a work item may be all there is to do for


class AgentFailed(Failed):
    """The agent's call failed."""


class AgentNotStarted(AgentFailed):
    """The agent's program could not be started."""


class PromptRefused(AgentFailed):
    """The agent's program could not be started with this prompt as an argument."""


class AgentOverloaded(Failed, TransientError):
    """The service behind an agent is not available now."""


class AgentKind:
    """Runs jobs of agents. Times come from the scheduler's clock, facts go through its store."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._claims = Claims(scheduler)
        self.servers = SessionServers(scheduler)
        self.url: str | None = None

    async def __call__(self, run: Run) -> Any:
        """Do what the job's payload says."""
        payload = run.payload if isinstance(run.payload, dict) else {}
        does = payload.get("does")
        if does == "beat":
            return await self._beat(run, payload)
        if does == "event":
            return await self._leave_event(run, payload)
        if payload.get("is_stale"):
            raise Noop("another run already did what it was woken for")
        if payload.get("work") and (does != "wake" or payload.get("work_events")):
            return await self._work(run, payload)
        return await self._ask(run, payload)

    async def _work(self, run: Run, payload: dict[str, Any]) -> Any:
        """Ask with a work item; without one the agent is not called, unless it is woken for something else, too."""
        item = await self._claims.take(run, payload)
        if item is None:
            if payload.get("reason") in FOR_WORK and not payload.get("events") and not payload.get("outside"):
                raise Noop("no work item waits")
            return await self._ask(run, {**payload, "item": None})
        events = [*payload.get("events", ()), *payload.get("work_events", ())]
        whole = {**payload, "item": item, "events": events}
        return await self._claims.holding(run, payload, lambda: self._ask(run, whole))

    async def _beat(self, run: Run, payload: dict[str, Any]) -> Any:
        if run.reason in BY_TIME and opening(payload, self._scheduler.clock.now()) is not None:
            raise Skip("outside its hours")
        agent = payload["agent"]
        reason = "manual" if run.reason == "manual" else "interval"  # a person is not bound to hours
        asked = await self._scheduler.transact(lambda tx, context: wake_unless_disabled(tx, context, agent, reason))
        if asked.waits_for == DISABLED:
            raise Skip(f"{agent} is disabled: resume it (wakeful resume {wake_job(agent)})")
        return {"woken": asked.wake_at is not None, "coalesced": asked.coalesced}

    async def _leave_event(self, run: Run, payload: dict[str, Any]) -> Any:
        agent, schedule = payload["agent"], payload["schedule"]
        if payload.get("work") and not await self._claims.has_work(run, payload):
            raise Noop("no work item waits")
        text = self._own_prompt(payload) or f"It is time for {schedule}."

        sender = sender_in(payload, number_of(run.id))

        def work(tx: Transaction, context: Context) -> tuple[int, bool]:
            outside = CAUSED if is_fed(tx, number_of(run.id)) else 0
            event, _ = add_event(
                tx, context, agent, text, source="cron", context_key=schedule, outside=outside, sender=sender
            )
            return event, wake_unless_disabled(tx, context, agent, "cron").wake_at is not None

        event, is_woken = await self._scheduler.transact(work)
        return {"event": ids.encode("evt", event), **({} if is_woken else {"woken": False})}

    # -- asking -------------------------------------------------------------------------------------------------------

    async def _ask(self, run: Run, payload: dict[str, Any]) -> Any:
        if "runner" not in payload:
            raise InvalidJob(f"There is no agent {payload['agent']!r} any more: remove {run.job}, or add it again.")
        asked = self._asked(run, payload)._replace(escapes=takes_paths(payload["runner"]), answer=_answer(run))
        is_limited = await self._is_fed(run, asked) and payload.get("untrusted") is not None
        if is_limited:
            payload = overridden(payload, payload["untrusted"])
        kept = await self._scheduler.read(lambda tx: kept_for(tx, number_of(run.id), run.job, payload))
        kept = kept._replace(token=kept.token or await self._scheduler.transact(lambda tx, _: token_of(tx, run)))
        prompt, notes, earlier = build_prompt(asked, secrets.token_hex(8)), list[str](), None
        if kept.session is not None and kept.session.program not in ("", program_of(payload["runner"])):
            notes.append(f"the session {kept.session.session} is one of {kept.session.program}; a new one began")
            kept = await self._forgotten(kept)
        ending, kept = await self._call(run, payload, prompt, kept)
        if isinstance(ending, Gone) and kept.session is not None:
            notes.append(f"the session {kept.session.session} was gone ({ending.why}); a new one began")
            kept, earlier = await self._forgotten(kept), _of_this_call(ending, payload)
            ending, kept = await self._call(run, payload, prompt, kept)
        if isinstance(ending, Wait):
            return ending
        if not isinstance(ending, Answered):
            raise await self._problem(ending, payload, with_earlier(_of_this_call(ending, payload), earlier))
        reply = await self._scheduler.transact(lambda tx, _: keep(tx, payload, kept, ending.reply))
        reply = with_earlier(reply, earlier)
        if (
            question := await self._scheduler.read(lambda tx: tx.of(Senders).question_of(number_of(run.id)))
        ) is not None:
            return ApprovalNeeded(question[0], None if question[1] is None else from_ms(question[1]))
        if kept.session is not None and reply.session not in (None, kept.session.session):
            notes.append(f"the session {kept.session.session} was not known; a new one began")
        notes += [f"not allowed: {what}" for what in (ending.tool.denied if ending.tool is not None else ())]
        output = {**output_of(payload, reply, notes), **_tool(ending)}
        return Output({**output, "untrusted": True} if is_limited else output, ending.log_file, usage_of(reply))

    async def _is_fed(self, run: Run, asked: PromptParts) -> bool:
        """Whether the run, or one that led to it, was given text from outside: on record before the agent is called."""
        number = number_of(run.id)
        fed = any(not one.is_request for one in asked.outside) or await self._scheduler.read(
            lambda tx: is_fed(tx, number)
        )
        if fed:
            await self._scheduler.transact(lambda tx, _: tx.of(Senders).feed(number))
        return fed

    async def _forgotten(self, kept: StoredSession) -> StoredSession:
        await self._scheduler.transact(lambda tx, _: forget(tx, kept))
        return kept._replace(session=None, is_stored=False)

    def _asked(self, run: Run, payload: dict[str, Any]) -> PromptParts:
        cut_off = run.reason == "recovery"
        item = payload.get("item") or {}
        outside = _of_item(item)
        if payload["does"] != "wake":
            prompt = self._own_prompt(payload) or ("Work on this item." if item else None)
            if payload.get("request") is not None:
                prompt, outside = _with_request(prompt, payload["request"], payload.get("chat"))
            if payload.get("is_outside") and prompt is not None:
                outside = [*outside, Outside("what to do, as a run wrote it", prompt)]
                prompt = None
            return PromptParts(run.job, prompt, outside=outside, was_cut_off=cut_off)
        events = [(source, text) for source, text in payload.get("events", ())]
        outside += [Outside(source, text) for source, text in payload.get("outside", ())]
        notes = _text_of(payload.get("prompt_file"))
        nothing_waits = not events and not outside
        if notes is not None and not _says_anything(notes) and nothing_waits and payload.get("reason") == "interval":
            raise Noop(f"{payload['prompt_file']} is empty and no event waits")
        return PromptParts(
            run.job, payload["prompt"], notes, payload.get("reason"), events, outside, was_cut_off=cut_off
        )

    def _own_prompt(self, payload: dict[str, Any]) -> str | None:
        if payload.get("prompt_file") is None:
            return payload.get("prompt")
        text = _text_of(payload["prompt_file"])
        if text is None:
            raise InvalidJob(f"The prompt file {payload['prompt_file']} does not exist.")
        return text

    async def _call(
        self, run: Run, payload: dict[str, Any], prompt: str, kept: StoredSession
    ) -> tuple[Ending | Wait, StoredSession]:
        """How the call ended, and what is kept for the run by then."""
        stored: list[asyncio.Task[None]] = []

        def on_session(session: str) -> None:
            """Stored at once: a run that is cut off continues in it."""
            seen = kept._replace(is_stored=kept.is_stored or bool(stored))
            work = self._scheduler.transact(lambda tx, _: see(tx, payload, seen, session))
            stored.append(asyncio.ensure_future(work))

        around = Surroundings(
            self._scheduler.host.log_folder,
            self._environment(run, payload, kept),
            self._scheduler.clock.now,
            on_session,
            isinstance(self._scheduler.clock, ManualClock),
        )
        session = kept.session.session if kept.session is not None else None
        turn = Turn(prompt, session, payload["agent"], run, payload["schedule"])
        try:
            if payload["runner"].get("url") is not None:
                ending: Ending | Wait = await self.servers.ask(payload["runner"], turn, on_session)
            else:
                ending = await call_agent(payload["runner"], turn, around)
        finally:
            if stored:
                await asyncio.wait(stored)
        was_stored = any(task.exception() is None for task in stored)
        return ending, kept._replace(is_stored=kept.is_stored or was_stored)

    def _environment(self, run: Run, payload: dict[str, Any], kept: StoredSession) -> dict[str, str]:
        found = {
            "WAKEFUL_RUN_ID": run.id,
            VARIABLE: payload["agent"],
            "WAKEFUL_SCHEDULE": payload["schedule"],
            "WAKEFUL_ATTEMPT": str(run.attempt),
            TOKEN: kept.token or "",
        }
        return found if self.url is None else {**found, "WAKEFUL_URL": self.url}

    async def _problem(self, ending: Ending, payload: dict[str, Any], reply: Reply) -> Exception:
        """What the run raises, with what its calls used."""
        assert not isinstance(ending, Answered)  # noqa: S101 - the caller has asked
        item = payload.get("item")
        value = {**({} if item is None else {"item": item["id"]}), **_tool(ending)}
        output = Output(value or None, ending.log_file, usage_of(reply))
        if isinstance(ending, Limited):
            return await self._deferred(ending, payload, output)
        if isinstance(ending, Overloaded):
            return AgentOverloaded(ending.why, output)
        if isinstance(ending, CallFailed) and not ending.started:
            return (PromptRefused if ending.is_prompt else AgentNotStarted)(ending.why, output)
        return AgentFailed(ending.why, output, getattr(ending, "outcome", "error"))

    async def _deferred(self, ending: Limited, payload: dict[str, Any], output: Output) -> Defer:
        """A run that met the limit of its account, which is stored for all its agents. It was called: that counts."""
        until, account = ends_at(ending, self._scheduler.clock.now()), limited_as(payload)
        if account is not None:
            await self._scheduler.transact(lambda tx, _: meet_limit(tx, account, until, ending.why))
        kept = Output(None, output.log_file, output.usage or {})
        return Defer(from_ms(until), f"rate limit: {ending.why}", kept=kept)


# -- texts ------------------------------------------------------------------------------------------------------------


def _answer(run: Run) -> str | None:
    """What a person said to the question that the run before this one asked."""
    given = run.approvals[-1] if run.approvals else None
    asked_by_itself = given is not None and given["question"] != f"Run {run.job}?"  # else its job asks before each run
    if given is None or given["verdict"] != APPROVED or not asked_by_itself:
        return None
    note = f": {given['note']}" if given["note"] else ""
    return f"You asked: {given['question']}\n{given['by']} approved it{note}. Go on from there."


def _tool(ending: Ending) -> dict[str, Any]:
    return {} if ending.tool is None else {"tool": ending.tool.shown()}


def _of_this_call(ending: Ending, payload: dict[str, Any]) -> Reply:
    """What a call that did not succeed used; a tool that reports the whole session says nothing about it."""
    reply, preset = ending.reply or Reply(""), preset_of(payload["runner"])
    return reply if preset is None or not preset.cumulative else reply._replace(tokens_in=None, tokens_out=None)


def _of_item(item: Mapping[str, Any]) -> list[Outside]:
    keys = [key for key in ("title", "body", "external_id", "path") if item.get(key)]
    return [Outside(key, item[key], is_request=bool(item.get(OWN))) for key in keys]


def _with_request(prompt: str | None, request: Any, chat: Any) -> tuple[str, list[Outside]]:
    """The prompt with labels in place of what a request brought, and what they stand for."""
    if request["body"] is None:
        raise InvalidJob("The request it was to work on was pruned: its content is gone.")
    about, body = request["about"], request["body"]
    if request["type"] == "chat":
        said, texts = fill(prompt or ON_MESSAGE, {**about, "text": body})
        return said, [one._replace(is_request=is_request(request, chat)) for one in texts]
    return fill(prompt or ON_WEBHOOK, values_in(body, about.get("content-type")))


def _text_of(path: str | None) -> str | None:
    """A file's text; None where it does not exist."""
    if path is None:
        return None
    if (doubt := distrust_below(Path(path))) is not None:
        raise InvalidJob(f"The prompt file {path} is not used because {doubt}: {ADVICE}.")
    try:
        # Never waits: a regular file alone, and little of it.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise InvalidJob(f"The prompt file {path} is not a regular file.")
            return file.read(LONGEST_FILE).decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidJob(f"The prompt file {path} cannot be read ({error.strerror}).") from None


def _says_anything(text: str) -> bool:
    """Whether a heartbeat's file has more than headings and empty list items."""
    return any(
        line.strip() and line.strip() not in ("-", "*") and not line.startswith("#") for line in text.splitlines()
    )
