"""Work items for runs: taken from a source, held while the agent works, and reported when it has ended.

What must stay true, wherever the process dies:
- an item is claimed in our store before it is claimed at its source, and noted before each step there;
- what a run has done is noted before it is reported, so that it is not done again;
- what could not be reported is reported by a later run; no request is made inside a transaction.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful import ids
from wakeful.clock import ManualClock
from wakeful.domains.agents.limits.holding import get_past, meet_limit
from wakeful.domains.agents.limits.tables import RateLimits
from wakeful.domains.agents.naming import source_key
from wakeful.domains.agents.runners.spec import DEFAULT_TIMEOUT_MS
from wakeful.domains.agents.settings import SessionSettings
from wakeful.domains.agents.sources import marking
from wakeful.domains.agents.sources.source import (
    InHand,
    ItemHeld,
    ItemSettled,
    Lost,
    Missing,
    SourceAway,
    SourceFailed,
    SourceLimited,
    WorkSource,
)
from wakeful.domains.agents.sources.tables import SourceTables
from wakeful.domains.agents.tables import AgentTables, WorkItem
from wakeful.domains.agents.work import MOST_ATTEMPTS, known_item
from wakeful.errors import InvalidJob, InvalidSetting
from wakeful.kernel.rules.outcome import Defer, Noop, Skip, Wait
from wakeful.references import filled
from wakeful.triggers.moments import from_ms

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.kernel.model.run import Run
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction

MOST_CLAIMS = 10  # items that one run tries to get
MOST_LISTED = 100
MOST_REPORTS = 10
LEASE_GRACE_MS = 10 * 60_000
API = "https://api.github.com"
LABEL = "ready"
log = logging.getLogger("wakeful.work")


class ClaimContext(NamedTuple):
    """Where a run looks for work: the source, its agent, and the run."""

    source: WorkSource
    agent: str
    run_id: int
    lease_ms: int


class Claims:
    """Hands out work items. Times come from the scheduler's clock, facts go through its store."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._sources: dict[str, WorkSource] = {}

    async def take(self, run: Run, payload: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The item a run is to work on; None where none waits. An item of the queue came with the run."""
        post = self._post(run, payload)
        if post is None or (payload.get("item") is not None and payload["item"].get("source") is None):
            return payload.get("item")
        await self._or_defer(post, self._bring_in)
        found: Mapping[str, Any] | None = await self._or_defer(post, self._claim)
        return found

    async def has_work(self, run: Run, payload: Mapping[str, Any]) -> bool:
        """Whether an item waits."""
        post = self._post(run, payload)
        if post is not None:
            await self._or_defer(post, self._bring_in)
        agent, key = payload["agent"], source_key(payload["work"])
        return await self._scheduler.read(lambda tx: _has_ready(tx, agent, key))

    async def holding(self, run: Run, payload: Mapping[str, Any], work: Callable[[], Awaitable[Any]]) -> Any:
        """Do the work, and report the result to the item's source. Exceptions pass through."""
        post = self._post(run, payload)
        if post is None:
            return await work()
        try:
            output = await work()
        except Exception as error:
            await self._give_back(post, error)
            raise
        if isinstance(output, Wait):
            return output  # the work continues elsewhere: a later run reports what came of it
        await self._report_done(post, output)
        return output

    # -- taking -------------------------------------------------------------------------------------------------------

    async def _bring_in(self, post: ClaimContext) -> None:
        """Report what is still to be reported, then learn what waits."""
        for item, text in await self._scheduler.read(lambda tx: _unreported(tx, post)):
            await self._safely(item, self._report(post, item, item.status, text))
        listing = await post.source.waiting(MOST_LISTED)
        await self._scheduler.transact(lambda tx, context: marking.bring_in(tx, context, post, listing, MOST_LISTED))

    async def _claim(self, post: ClaimContext) -> Mapping[str, Any] | None:
        passed: list[int] = []
        for _ in range(MOST_CLAIMS):
            item = await self._next(post, passed)
            if item is None:
                return None
            taken = await self._take(post, item)
            if taken is not None:
                return taken
            passed.append(item.id)
        return None

    async def _next(self, post: ClaimContext, passed: list[int]) -> WorkItem | None:
        nonce = secrets.token_hex(8)
        return await self._scheduler.transact(lambda tx, _: marking.claim(tx, post, passed, nonce))

    async def _take(self, post: ClaimContext, item: WorkItem) -> Mapping[str, Any] | None:
        """Claim an item at its source, too; None if that failed."""
        if item.source is None:
            return known_item(item)
        try:
            claimed = await post.source.claim(_in_hand(post, item), self._note(item))
        except (SourceAway, SourceLimited):
            await self._scheduler.transact(lambda tx, _: marking.put_back(tx, item))
            raise
        if not isinstance(claimed, ItemHeld):
            await self._scheduler.transact(lambda tx, _: _not_ours(tx, item, claimed))
            return None
        known = known_item(await self._scheduler.transact(lambda tx, _: marking.refresh(tx, item, claimed)))
        return {**known, "path": claimed.path} if claimed.path else known

    # -- reporting ----------------------------------------------------------------------------------------------------

    async def _report_done(self, post: ClaimContext, output: Any) -> None:
        item = await self._scheduler.transact(lambda tx, _: marking.decide(tx, post.run_id, "done"))
        if item is not None:
            value = getattr(output, "value", output)
            reply = value.get("reply") if isinstance(value, dict) else None
            await self._safely(item, self._report(post, item, "done", reply or ""))

    async def _give_back(self, post: ClaimContext, error: Exception) -> None:
        is_failure = not isinstance(error, (Defer, Noop, Skip))

        def decide(tx: Transaction, _: Context) -> WorkItem | None:
            found = tx.of(AgentTables).item_of(post.run_id)
            if found is None or not is_failure or found.attempts < MOST_ATTEMPTS:
                return found
            return marking.decide(tx, post.run_id, "failed")

        item = await self._scheduler.transact(decide)
        if item is None or item.source is None or not item.held:
            return
        if marking.verdict(item) == "failed":
            await self._safely(item, self._report(post, item, "failed", str(error)))
        else:
            await self._safely(item, self._release(post, item))

    async def _report(self, post: ClaimContext, item: WorkItem, status: str, text: str) -> None:
        said = await post.source.report(_in_hand(post, item), status, text)
        await self._scheduler.transact(lambda tx, _: marking.let_go(tx, item, said))

    async def _release(self, post: ClaimContext, item: WorkItem) -> None:
        await post.source.release(_in_hand(post, item), self._note(item))
        await self._scheduler.transact(lambda tx, _: marking.let_go(tx, item, None))

    async def _safely(self, item: WorkItem, work: Awaitable[None]) -> None:
        """What the source does not hear now, it hears from a later run; what the run has done stays done."""
        try:
            await work
        except SourceFailed as error:
            log.warning("%s could not be reported to %s, which a later run does: %s", item.title, item.source, error)

    def _note(self, item: WorkItem) -> Callable[[Mapping[str, Any]], Awaitable[None]]:
        async def note(said: Mapping[str, Any]) -> None:
            await self._scheduler.transact(lambda tx, _: marking.note(tx, item, said))

        return note

    # -- sources ------------------------------------------------------------------------------------------------------

    async def _or_defer(self, post: ClaimContext, work: Callable[[ClaimContext], Awaitable[Any]]) -> Any:
        """A limit of the source puts the run off, and those after it that come too early."""
        began, key = self._scheduler.clock.now(), post.source.key
        limit = await self._scheduler.read(lambda tx: tx.of(RateLimits).of(key))
        if limit is not None and limit.until > began:
            raise Defer(from_ms(limit.until), f"rate limit: {limit.why}")
        try:
            found = await work(post)
        except SourceLimited as error:
            until, why = error.until, str(error)
            await self._scheduler.transact(lambda tx, _: meet_limit(tx, key, until, why))
            raise Defer(from_ms(until), f"rate limit: {why}") from None
        if limit is not None:
            await self._scheduler.transact(lambda tx, context: get_past(tx, context, key, began))
        return found

    def _post(self, run: Run, payload: Mapping[str, Any]) -> ClaimContext | None:
        spec = payload.get("work")
        if not isinstance(spec, Mapping):
            return None
        decoded = ids.decode(run.id)
        assert decoded is not None  # noqa: S101 - the kernel made it
        runner = payload.get("runner") or {}
        timeout = runner.get("timeout") or (SessionSettings.deadline_ms if runner.get("url") else DEFAULT_TIMEOUT_MS)
        return ClaimContext(self._source(spec), payload["agent"], decoded[1], timeout + LEASE_GRACE_MS)

    def _source(self, spec: Mapping[str, Any]) -> WorkSource:
        """The source that a job names; kept, because it knows what has not changed."""
        text = json.dumps(spec, sort_keys=True)
        if text not in self._sources:
            if len(self._sources) >= 1000:
                self._sources.clear()
            self._sources[text] = self._made(spec)
        return self._sources[text]

    def _made(self, spec: Mapping[str, Any]) -> WorkSource:
        if spec["source"] == "directory":
            from wakeful.domains.agents.sources.directory import DirectorySource

            is_trusted = spec.get("trust") != "none"
            inline = isinstance(self._scheduler.clock, ManualClock)
            return DirectorySource(spec["path"], inline=inline, is_trusted=is_trusted)
        from wakeful.domains.agents.sources.github import GitHubSource  # loads httpx
        from wakeful.domains.agents.sources.github_api import GitHub

        now = self._scheduler.clock.now
        base = spec.get("base_url") or os.environ.get("GITHUB_API_URL") or API
        api = GitHub(base, lambda: _secret(spec.get("token")), now)
        return GitHubSource(api, spec["repo"], spec.get("label") or LABEL, now, close=bool(spec.get("close")))


def _secret(token: str | None) -> str | None:
    """Looked up for every request: the store never has it."""
    try:
        return None if token is None else filled(token, Path("/"), os.environ)
    except InvalidSetting as error:
        raise InvalidJob(f"work.token {error}") from None


def _has_ready(tx: Transaction, agent: str, key: str | None) -> bool:
    return tx.of(AgentTables).has_ready(agent, key)


def _in_hand(post: ClaimContext, item: WorkItem) -> InHand:
    return InHand(str(item.external_id), marking.read(item), post.agent, post.lease_ms)


def _unreported(tx: Transaction, post: ClaimContext) -> list[tuple[WorkItem, str]]:
    """What is still to be reported, each with what to say: why it failed, or what the agent replied."""
    found = tx.of(SourceTables).unreported(post.agent, post.source.key, MOST_REPORTS)
    return [(item, item.last_error or _reply_to(tx, item)) for item in found if marking.read(item).get("nonce")]


def _reply_to(tx: Transaction, item: WorkItem) -> str:
    details = tx.runs.details(item.run_id) if item.run_id is not None else None
    output = json.loads(details.output) if details is not None and details.output is not None else None
    return str(output.get("reply") or "") if isinstance(output, dict) else ""


def _not_ours(tx: Transaction, item: WorkItem, held: Lost | Missing | ItemSettled) -> None:
    """What becomes of an item that a run claimed and did not get."""
    tables = tx.of(AgentTables)
    if isinstance(held, Missing):
        tx.of(SourceTables).forget(item.id, item.run_id or 0)
    elif marking.still(tx, item) is None:
        return
    elif isinstance(held, ItemSettled):
        tables.save_item(item._replace(status=held.status, held=0))
    else:
        attempts = max(0, item.attempts - 1)
        tables.save_item(item._replace(status="ready", attempts=attempts, held=0, mark=None))
