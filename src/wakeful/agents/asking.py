"""The handler of kind `agent`: asks an agent once, in its session, and says what came of it."""

from __future__ import annotations

import asyncio
import os
import secrets
import stat
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful import ids
from wakeful.agents.admitting import opening
from wakeful.agents.inbound.payloads import ON_MESSAGE, ON_WEBHOOK, fill, values_in
from wakeful.agents.inbound.sections import overridden
from wakeful.agents.naming import VARIABLE, session_name
from wakeful.agents.prompting import Asked, Outside, build_prompt
from wakeful.agents.runners.calling import call_agent
from wakeful.agents.runners.spec import account_of, preset_of
from wakeful.agents.runners.turn import Answered, Ending, Gone, Limited, Overloaded, Reply, Surroundings, Turn
from wakeful.agents.sources import Desk
from wakeful.agents.tables import AgentSession, AgentTables
from wakeful.agents.wakes import add_event, request_wake
from wakeful.agents.waking import heard
from wakeful.errors import InvalidJob
from wakeful.kernel.actions.run_tokens import known_token, run_token
from wakeful.kernel.rules.outcome import Defer, Failed, Noop, Output, Skip, TransientError
from wakeful.kernel.views.models import Run
from wakeful.triggers.moments import from_ms

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction

LONGEST_FILE = 256 * 1024
LIMIT_MS = 15 * 60_000  # how long an account waits whose tool does not say when its limit ends
BY_TIME = ("schedule", "catch_up")
TOKEN = "WAKEFUL_TOKEN"  # noqa: S105 - the variable's name
FOR_WORK = (None, "cron", "retry")  # why a run starts that a work item may be all there is to do for


class AgentFailed(Failed):
    """The agent's call failed."""


class AgentOverloaded(Failed, TransientError):
    """The service behind an agent is not available now."""


class Kept(NamedTuple):
    """What is kept for a run: its session, its name and state, and its token."""

    name: str
    session: AgentSession | None
    token: str | None = None


class AgentKind:
    """Runs jobs of agents. Times come from the scheduler's clock, facts go through its store."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._desk = Desk(scheduler)
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
        item = await self._desk.take(run, payload)
        if item is None:
            if payload.get("reason") in FOR_WORK and not payload.get("events") and not payload.get("outside"):
                raise Noop("no work item waits")
            return await self._ask(run, {**payload, "item": None})
        events = [*payload.get("events", ()), *payload.get("work_events", ())]
        whole = {**payload, "item": item, "events": events}
        return await self._desk.holding(run, payload, lambda: self._ask(run, whole))

    async def _beat(self, run: Run, payload: dict[str, Any]) -> Any:
        if run.reason in BY_TIME and opening(payload, self._scheduler.clock.now()) is not None:
            raise Skip("outside its hours")
        agent = payload["agent"]
        asked = await self._scheduler.transact(lambda tx, context: request_wake(tx, context, agent, "interval"))
        return {"woken": asked.wake_at is not None, "coalesced": asked.coalesced}

    async def _leave_event(self, run: Run, payload: dict[str, Any]) -> Any:
        agent, schedule = payload["agent"], payload["schedule"]
        if payload.get("work") and not await self._desk.has_work(run, payload):
            raise Noop("no work item waits")
        text = self._own_prompt(payload) or f"It is time for {schedule}."

        def work(tx: Transaction, context: Context) -> int:
            event, _ = add_event(tx, context, agent, text, source="cron", context_key=schedule)
            request_wake(tx, context, agent, "cron")
            return event

        return {"event": ids.encode("evt", await self._scheduler.transact(work))}

    # -- asking -------------------------------------------------------------------------------------------------------

    async def _ask(self, run: Run, payload: dict[str, Any]) -> Any:
        if "runner" not in payload:
            raise InvalidJob(f"There is no agent {payload['agent']!r} any more: remove {run.job}, or add it again.")
        asked = self._asked(run, payload)
        is_limited = bool(asked.outside) and payload.get("untrusted") is not None
        if is_limited:
            payload = overridden(payload, payload["untrusted"])
        kept = await self._scheduler.look(lambda tx: _kept(tx, run, payload))
        kept = kept._replace(token=kept.token or await self._scheduler.transact(lambda tx, _: _token(tx, run)))
        prompt, notes = build_prompt(asked, secrets.token_hex(8)), list[str]()
        ending = await self._call(run, payload, prompt, kept)
        if isinstance(ending, Gone) and kept.session is not None:
            notes.append(f"the session {kept.session.session} was gone ({ending.why}); a new one began")
            await self._scheduler.transact(lambda tx, _: tx.of(AgentTables).forget_session(kept.name))
            kept = kept._replace(session=None)
            ending = await self._call(run, payload, prompt, kept)
        if not isinstance(ending, Answered):
            raise await self._problem(ending, payload)
        reply = await self._scheduler.transact(lambda tx, _: _keep(tx, payload, kept, ending.reply))
        output = _output(payload, reply, notes)
        return Output({**output, "untrusted": True} if is_limited else output, ending.log_file, _usage(reply))

    def _asked(self, run: Run, payload: dict[str, Any]) -> Asked:
        cut_off = run.reason == "recovery"
        item = payload.get("item") or {}
        outside = [Outside(key, item[key]) for key in ("title", "body", "external_id", "path") if item.get(key)]
        if payload["does"] != "wake":
            prompt = self._own_prompt(payload) or ("Work on this item." if item else None)
            if payload.get("request") is not None:
                prompt, outside = _with_request(prompt, payload["request"])
            return Asked(run.job, prompt, outside=outside, was_cut_off=cut_off)
        events = [(source, text) for source, text in payload.get("events", ())]
        outside += [Outside(source, text) for source, text in payload.get("outside", ())]
        notes = _text_of(payload.get("prompt_file"))
        nothing_waits = not events and not outside
        if notes is not None and not _says_anything(notes) and nothing_waits and payload.get("reason") == "interval":
            raise Noop(f"{payload['prompt_file']} is empty and no event waits")
        return Asked(run.job, payload["prompt"], notes, payload.get("reason"), events, outside, was_cut_off=cut_off)

    def _own_prompt(self, payload: dict[str, Any]) -> str | None:
        if payload.get("prompt_file") is None:
            return payload.get("prompt")
        text = _text_of(payload["prompt_file"])
        if text is None:
            raise InvalidJob(f"The prompt file {payload['prompt_file']} does not exist.")
        return text

    async def _call(self, run: Run, payload: dict[str, Any], prompt: str, kept: Kept) -> Ending:
        stored: list[asyncio.Task[Any]] = []

        def on_session(session: str) -> None:
            """Stored at once: a run that is cut off goes on in it."""
            work = self._scheduler.transact(lambda tx, _: _see(tx, payload, kept.name, session))
            stored.append(asyncio.ensure_future(work))

        around = Surroundings(
            self._scheduler.log_folder,
            self._environment(run, payload, kept),
            self._scheduler.clock.now,
            on_session,
            self._scheduler.default_zone,
        )
        session = kept.session.session if kept.session is not None else None
        turn = Turn(prompt, session, payload["agent"], run, payload["schedule"])
        try:
            return await call_agent(payload["runner"], turn, around)
        finally:
            if stored:
                await asyncio.wait(stored)

    def _environment(self, run: Run, payload: dict[str, Any], kept: Kept) -> dict[str, str]:
        found = {
            "WAKEFUL_RUN_ID": run.id,
            VARIABLE: payload["agent"],
            "WAKEFUL_SCHEDULE": payload["schedule"],
            "WAKEFUL_ATTEMPT": str(run.attempt),
            TOKEN: kept.token or "",
        }
        return found if self.url is None else {**found, "WAKEFUL_URL": self.url}

    async def _problem(self, ending: Ending, payload: dict[str, Any]) -> Exception:
        """What the run raises."""
        if isinstance(ending, Limited):
            now = self._scheduler.clock.now()
            until, account = ending.until or now + LIMIT_MS, account_of(payload["runner"])
            if account is not None:
                await self._scheduler.transact(
                    lambda tx, _: tx.of(AgentTables).put_limit(account, until, ending.why[:200])
                )
            return Defer(from_ms(until), f"rate limit: {ending.why}")
        assert not isinstance(ending, Answered)  # noqa: S101 - the caller has asked
        preset, reply = preset_of(payload["runner"]), getattr(ending, "reply", None)
        if reply is not None and preset is not None and preset.cumulative:
            reply = reply._replace(tokens_in=None, tokens_out=None)  # they are those of the whole session
        item = payload.get("item")
        value = None if item is None else {"item": item["id"]}
        output = Output(value, ending.log_file, None if reply is None else _usage(reply))
        if isinstance(ending, Overloaded):
            return AgentOverloaded(ending.why, output)
        return AgentFailed(ending.why, output, getattr(ending, "outcome", "error"))


# -- sessions ---------------------------------------------------------------------------------------------------------


def _kept(tx: Transaction, run: Run, payload: dict[str, Any]) -> Kept:
    """The session a run goes on in; of an ephemeral one, that of the run it recovers."""
    policy = payload.get("session", "persistent")
    name = f"run:{ids.run_text(_first_run(tx, run))}" if policy == "ephemeral" else session_name(payload)
    return Kept(name, tx.of(AgentTables).session(name), known_token(tx, _number(run)))


def _token(tx: Transaction, run: Run) -> str:
    return run_token(tx, _number(run))


def _number(run: Run) -> int:
    decoded = ids.decode(run.id)
    assert decoded is not None  # noqa: S101 - the kernel made it
    return decoded[1]


def _first_run(tx: Transaction, run: Run) -> int:
    first = _number(run)
    row = tx.runs.get(first)
    while row is not None and row.reason == "recovery" and row.retry_of is not None:
        first, row = row.retry_of, tx.runs.get(row.retry_of)
    return first


def _see(tx: Transaction, payload: dict[str, Any], name: str, session: str) -> None:
    """A session was seen: it is kept, with what was counted in it before."""
    tables = tx.of(AgentTables)
    known = tables.session(name)
    if known is not None and known.session == session:
        tables.keep_session(known._replace(agent=payload["agent"], used_at=tx.now))
    else:
        tables.keep_session(AgentSession(name, payload["agent"], session, tx.now, tx.now))


def _keep(tx: Transaction, payload: dict[str, Any], kept: Kept, reply: Reply) -> Reply:
    """Keep the session of a call that succeeded, and count what is its own of a tool that reports the whole."""
    tables = tx.of(AgentTables)
    if payload.get("session") == "ephemeral":
        tables.forget_session(kept.name)
        return reply
    if reply.session is None:
        return reply
    _see(tx, payload, kept.name, reply.session)
    preset = preset_of(payload["runner"])
    if preset is None or not preset.cumulative or reply.tokens_in is None or reply.tokens_out is None:
        return reply
    known = tables.session(kept.name)
    assert known is not None  # noqa: S101 - just seen
    tables.keep_session(known._replace(tokens_in=reply.tokens_in, tokens_out=reply.tokens_out))
    own_in, own_out = reply.tokens_in - known.tokens_in, reply.tokens_out - known.tokens_out
    return reply._replace(tokens_in=max(0, own_in), tokens_out=max(0, own_out))


# -- texts ------------------------------------------------------------------------------------------------------------


def _output(payload: dict[str, Any], reply: Reply, notes: list[str]) -> dict[str, Any]:
    said = heard(reply.text, payload.get("ack_token"), payload.get("ack_max_chars", 300))
    silent = said.outcome == "sent" and payload.get("deliver") == "none"
    output = {
        "reply": said.text,
        "session": reply.session,
        "cost": reply.cost,
        "tokens_in": reply.tokens_in,
        "tokens_out": reply.tokens_out,
        "outcome": "silent" if silent else said.outcome,
    }
    if payload.get("reason") is not None:
        output["reason"] = payload["reason"]
    if payload.get("events"):
        output["events"] = len(payload["events"])
    if payload.get("item") is not None:
        output["item"] = payload["item"]["id"]
    return {**output, "notes": notes} if notes else output


def _usage(reply: Reply) -> dict[str, Any] | None:
    """What the agent reported that it used; None where it reported nothing."""
    found = {"cost": reply.cost, "tokens_in": reply.tokens_in, "tokens_out": reply.tokens_out}
    return found if any(value is not None for value in found.values()) else None


def _with_request(prompt: str | None, request: Any) -> tuple[str, list[Outside]]:
    """The prompt with labels in place of what a request brought, and what they stand for."""
    if request["body"] is None:
        raise InvalidJob("The request it was to work on was pruned: its content is gone.")
    about, body = request["about"], request["body"]
    if request["type"] == "chat":
        return fill(prompt or ON_MESSAGE, {**about, "text": body})
    return fill(prompt or ON_WEBHOOK, values_in(body, about.get("content-type")))


def _text_of(path: str | None) -> str | None:
    """A file's text; None where it does not exist."""
    if path is None:
        return None
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
