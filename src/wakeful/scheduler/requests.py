"""Requests of outside callers to the scheduler: within their rights, under conditions, once per key."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from wakeful import ids
from wakeful.domains import domains
from wakeful.errors import ActionNotFound, CannotUndo, StartRefused
from wakeful.kernel.actions import authorized, holding, lookup, selections, undoing
from wakeful.kernel.actions import runs as run_actions
from wakeful.kernel.actions.authorization import Rights, own_job
from wakeful.kernel.actions.authorized import ALWAYS, Changed, Condition, WriteTerms
from wakeful.kernel.actions.drafts import NewJob, check_note
from wakeful.kernel.actions.idempotency import IdempotentRequest, run_idempotent
from wakeful.kernel.actions.selections import BulkResult, JobSelection
from wakeful.kernel.engine.ending import MCP
from wakeful.kernel.hooks import Showing
from wakeful.kernel.model.job import Job, job_views
from wakeful.kernel.model.run import Run, run_views
from wakeful.kernel.rules.holding import Hold, hold_of
from wakeful.kernel.rules.undoing import FINAL, UNDO_MS
from wakeful.kernel.views.actions import Action, Undone, action_view
from wakeful.kernel.views.explain import Explanation, explain_job, explain_run
from wakeful.kernel.views.ledger import Ledger, ledger_in_steps, ledger_of_job
from wakeful.kernel.views.slots import Slot, find_slot
from wakeful.scheduler.core import Wiring
from wakeful.store.jobs import JobFilter
from wakeful.store.runs import RunFilter

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction

T = TypeVar("T")
SOURCE = "api"


def _source(rights: Rights) -> str:
    """Who makes a job: callers of the API, or those of MCP."""
    return MCP if rights.via == MCP else SOURCE


def _undo_some(number: int, rights: Rights, cursor: int, tx: Transaction, context: Context) -> undoing.UndoneBatch:
    return undoing.undo_some(tx, context, number, rights, cursor)


class Requests:
    """The same things users of the library do, for callers whose rights end somewhere.

    With `once` a request that was done before raises Replayed, with what it was answered.
    """

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._store = wiring.store
        self.hidden_kinds = wiring.hidden_kinds
        self.kinds_apart = wiring.kinds_apart
        self.admin_kinds = wiring.admin_kinds

    async def _ask(
        self, work: Callable[[Transaction, Context], T], once: IdempotentRequest | None = None, *, cancels: bool = False
    ) -> T:
        context = self._wiring.identify()
        return await self._wiring.write(lambda tx: run_idempotent(tx, once, lambda: work(tx, context)), cancels=cancels)

    async def show(self, reader: int | None, work: Callable[[Transaction, Showing], T]) -> T:
        """What the work reads; it tells the second thing it is given whose words that is. `reader`: a run that asks.

        Everything that shows words of jobs and runs goes through here: what it means for a caller that is a run is on
        record before it has them.
        """
        if reader is None:
            return await self._store.read(lambda tx: work(tx, Showing()))

        def read(tx: Transaction) -> tuple[T, list[Callable[[Transaction], None] | None]]:
            showing = Showing()
            found = work(tx, showing)
            return found, [domain.shown(tx, reader, showing) for domain in domains() if domain.shown is not None]

        found, notes = await self._store.read(read)
        for note in notes:
            if note is not None:
                await self._wiring.write(note)
        return found

    # -- jobs ---------------------------------------------------------------------------------------------------------

    async def list_jobs(self, wanted: JobFilter, rights: Rights) -> list[Job]:
        """Jobs by name; only the caller's own, if it is limited to them."""
        if rights.owner is not None:
            if wanted.owner not in (None, rights.owner):
                return []
            wanted = wanted._replace(owned=rights.owned)

        def work(tx: Transaction, showing: Showing) -> list[Job]:
            found = job_views(tx, tx.jobs.matching(wanted), self._wiring.min_interval)
            showing.add(*[job.id for job in found])
            return found

        return await self.show(rights.run, work)

    async def get_job(self, ref: str, rights: Rights) -> Job:
        """The job of that id or name; JobNotFound where there is none for this caller."""

        def work(tx: Transaction, showing: Showing) -> Job:
            job = job_views(tx, [own_job(tx, ref, rights)], self._wiring.min_interval)[0]
            showing.add(job.id)
            return job

        return await self.show(rights.run, work)

    async def create_job(
        self, new: NewJob, rights: Rights, *, enabled: bool = True, once: IdempotentRequest | None = None
    ) -> Job:
        """Store a new job under a free name."""
        made, terms = self._wiring.draft(new, _source(rights)), WriteTerms(rights, self._wiring.default_zone())
        return await self._ask(
            lambda tx, context: authorized.create_job(tx, context, made, terms, enabled=enabled), once
        )

    async def put_job(
        self, new: NewJob, rights: Rights, condition: Condition = ALWAYS, *, enabled: bool | None = None
    ) -> Changed:
        """Store a job under its name, whether there is one or not."""
        made, terms = (
            self._wiring.draft(new, _source(rights)),
            WriteTerms(rights, self._wiring.default_zone(), condition),
        )
        return await self._ask(lambda tx, context: authorized.put_job(tx, context, made, terms, enabled=enabled))

    async def patch_job(
        self, ref: str, changes: dict[str, Any], rights: Rights, condition: Condition = ALWAYS
    ) -> Changed:
        """Change some of a job."""
        terms = WriteTerms(rights, self._wiring.default_zone(), condition)
        return await self._ask(lambda tx, context: authorized.patch_job(tx, context, ref, changes, terms))

    async def remove_job(self, ref: str, rights: Rights, condition: Condition = ALWAYS) -> str | None:
        """Remove a job; the id of the action, by which it can be restored."""
        terms = WriteTerms(rights, self._wiring.default_zone(), condition)
        return await self._ask(lambda tx, context: authorized.remove_job(tx, context, ref, terms))

    async def pause_jobs(
        self, many: JobSelection, note: str | None, rights: Rights, once: IdempotentRequest | None = None
    ) -> BulkResult:
        """Pause many in one transaction."""
        text = check_note(note)
        return await self._ask(lambda tx, context: selections.pause_many(tx, context, many, text, rights), once)

    async def resume_jobs(
        self, many: JobSelection, rights: Rights, once: IdempotentRequest | None = None
    ) -> BulkResult:
        """Resume many in one transaction."""
        return await self._ask(lambda tx, context: selections.resume_many(tx, context, many, rights), once)

    async def run_jobs(self, many: JobSelection, rights: Rights, once: IdempotentRequest | None = None) -> BulkResult:
        """Start many in one transaction; what cannot be started is refused, each with its reason."""
        return await self._ask(lambda tx, context: selections.run_many(tx, context, many, rights), once)

    async def preview_jobs(self, what: str, many: JobSelection, rights: Rights) -> selections.Preview:
        """What `run`, `pause` or `resume` would do to many; nothing is changed."""
        context = self._wiring.identify()
        return await self._store.read(lambda tx: selections.preview(tx, context, what, many, rights))

    async def hold_all(
        self, note: str | None, rights: Rights, *, messages: bool = False, once: IdempotentRequest | None = None
    ) -> holding.Held:
        """Start nothing more, on any node, until `release_all`; with `messages`, send nothing either."""
        text = check_note(note)
        return await self._ask(lambda tx, context: holding.hold_all(tx, context, rights, text, messages=messages), once)

    async def release_all(self, rights: Rights, once: IdempotentRequest | None = None) -> holding.Held:
        """Let everything go on. What waited is put back in steps, so that no other transaction waits for all of it."""
        done = await self._ask(lambda tx, context: holding.release_all(tx, context, rights), once)
        await self._put_back(more=done.more)
        return done

    async def _put_back(self, *, more: bool) -> None:
        while more:
            more = await self._ask(lambda tx, _: holding.put_back(tx))

    async def get_hold(self) -> Hold | None:
        """The hold on everything; None where there is none."""
        return await self._store.read(lambda tx: hold_of(tx.nodes.held()))

    async def undo(self, action: str, rights: Rights) -> Undone:
        """Undo an action, as far as its changes are still in place; CannotUndo if none of them is."""
        number = ids.action_number(action)
        if number is None:
            message = f"There is no action {action!r:.300}: an action's id looks like act_0000000000000."
            raise ActionNotFound(message)
        await self._store.read(lambda tx: undoing.undoable(tx, number))
        what, restored, kept, cursor = "", list[str](), dict[str, str](), 0
        while True:
            part = await self._ask(partial(_undo_some, number, rights, cursor))
            what, restored, kept = what or part.what, restored + part.restored, {**kept, **part.kept}
            if part.cursor is None:
                break
            cursor = part.cursor
        await self._put_back(more=what == holding.HOLD and bool(restored))
        if not restored:
            reasons = "; ".join(list(kept.values())[:3]) or "nothing is left of it that you may undo"
            message = f"{action} cannot be undone: {reasons}."
            raise CannotUndo(message)
        return Undone(action, what, restored, kept)

    def new_action(self) -> int:
        """The number of an action that several requests are to be parts of."""
        return self._wiring.identify().new_id()

    async def latest_action(self, rights: Rights) -> str:
        """The last thing this caller did from there that can still be undone; ActionNotFound where there is nothing."""
        found = await self._store.read(
            lambda tx: tx.actions.latest(ids.first_id_at(tx.now - UNDO_MS), (rights.caller, rights.via), FINAL)
        )
        if found is None:
            message = (
                f"{rights.caller} did nothing in the last {UNDO_MS // 60_000} minutes that can be undone: "
                "wakeful undo --list shows all actions, and wakeful undo ID undoes one."
            )
            raise ActionNotFound(message)
        return ids.encode("act", found)

    async def list_actions(self, before: int | None, limit: int) -> list[Action]:
        """Actions of people and programs, newest first."""
        return await self._store.read(
            lambda tx: [action_view(head, tx.now) for head in tx.actions.before(before, limit)]
        )

    # -- runs ---------------------------------------------------------------------------------------------------------

    async def run_job(self, ref: str, payload: Any, rights: Rights, once: IdempotentRequest | None = None) -> Run:
        """Start a job now, through the same admission as everything else."""
        return await self._by_hand(lambda tx, context: authorized.run_job(tx, context, ref, payload, rights), once)

    async def retry_run(self, run: str, rights: Rights, once: IdempotentRequest | None = None) -> Run:
        number = lookup.require_run(run)
        return await self._by_hand(lambda tx, context: authorized.retry_run(tx, context, number, rights), once)

    async def _by_hand(self, work: Callable[[Transaction, Context], Run], once: IdempotentRequest | None) -> Run:
        """A start by hand; one that its kind refuses is counted."""
        try:
            return await self._ask(work, once)
        except StartRefused as refused:
            name = str(refused.context["job"])
            await self._ask(lambda tx, context: run_actions.note_refused(tx, context, name))
            raise

    async def cancel_run(self, run: str, rights: Rights) -> Run:
        number = lookup.require_run(run)
        return await self._ask(lambda tx, context: authorized.cancel_run(tx, context, number, rights), cancels=True)

    async def approve_run(
        self, run: str, note: str | None, rights: Rights, once: IdempotentRequest | None = None
    ) -> Run:
        """Approve a run that asked; the run that goes on."""
        number = lookup.require_run(run)
        return await self._ask(lambda tx, context: authorized.approve_run(tx, context, number, note, rights), once)

    async def reject_run(self, run: str, note: str | None, rights: Rights) -> Run:
        """Reject a run that asked."""
        number = lookup.require_run(run)
        return await self._ask(lambda tx, context: authorized.reject_run(tx, context, number, note, rights))

    async def list_runs(self, wanted: RunFilter, rights: Rights, *, job: str | None = None) -> list[Run]:
        """Runs, the newest first; `job` by id or name, also a removed one."""

        def work(tx: Transaction, showing: Showing) -> list[Run]:
            chosen = wanted._replace(hidden=self.hidden_kinds)
            chosen = chosen._replace(owned=rights.owned)
            if job is not None:
                if rights.owner is not None:
                    own_job(tx, job, rights)
                chosen = chosen._replace(job_id=lookup.history_of(tx, job))
            found = run_views(tx, tx.runs.matching(chosen))
            showing.add(*[run.id for run in found])
            return found

        return await self.show(rights.run, work)

    async def get_run(self, run: str, rights: Rights) -> Run:
        """The run of that id; RunNotFound where there is none for this caller."""
        number = lookup.require_run(run)

        def work(tx: Transaction, showing: Showing) -> Run:
            authorized.ensure_own_run(tx, number, rights)
            showing.runs.add(number)
            row = tx.runs.get(number)
            assert row is not None  # noqa: S101 - just found, in the same snapshot
            return run_views(tx, [row])[0]

        return await self.show(rights.run, work)

    async def explain(self, ref: str, rights: Rights) -> Explanation:
        """Why a job ran, did not, and when it will; or why a run was and how it ended."""
        number, view = lookup.run_number(ref), self._wiring.viewpoint()

        def work(tx: Transaction, showing: Showing) -> Explanation:
            if number is not None:
                authorized.ensure_own_run(tx, number, rights)
                job, _, run = lookup.find_run(tx, number)
                showing.runs.add(number)
                return explain_run(tx, job, run, view)
            job, state = own_job(tx, ref, rights)
            showing.jobs.add(job.id)
            showing.runs.update(one for one in (state.run_id, state.last_run_id) if one is not None)
            return explain_job(tx, job, state, view)

        return await self.show(rights.run, work)

    async def get_ledger(self, ref: str | None, since: Callable[[int], int], rights: Rights) -> Ledger:
        """What became of the slots of one job, or of all jobs the caller may see; `since`: from when, as of now."""
        if ref is None:
            return await ledger_in_steps(self._store, since, self.hidden_kinds, rights.owned)
        return await self._store.read(lambda tx: ledger_of_job(tx, *own_job(tx, ref, rights), since(tx.now)))

    async def get_slot(self, ref: str, slot: int, rights: Rights) -> Slot:
        """What became of one slot; SlotNotFound where the job has none there."""

        def work(tx: Transaction, showing: Showing) -> Slot:
            found = find_slot(tx, *own_job(tx, ref, rights), slot)
            showing.add(*[run.id for run in found.runs])
            return found

        return await self.show(rights.run, work)
