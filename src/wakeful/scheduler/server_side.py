"""What a server needs of its scheduler beyond what users of the library do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from wakeful import ids
from wakeful.domains import domains
from wakeful.errors import ActionNotFound, CannotUndo
from wakeful.kernel.actions import authorized, holding, lookup, run_tokens, selections, sign_in, tokens, undoing
from wakeful.kernel.actions.authorization import own_job
from wakeful.kernel.actions.drafts import check_note
from wakeful.kernel.actions.recording import note_other, origin_of
from wakeful.kernel.actions.selections import JobSelection
from wakeful.kernel.cluster.nodes import Node, Seen, drain_node
from wakeful.kernel.context import Rights
from wakeful.kernel.hooks import Showing
from wakeful.kernel.model.job import Job, job_views
from wakeful.kernel.model.run import Run, run_views
from wakeful.kernel.rules.holding import Hold, hold_of
from wakeful.kernel.rules.undoing import FINAL, UNDO_MS
from wakeful.kernel.views.actions import Action, Undone, action_view
from wakeful.kernel.views.explain import Explanation, explain_job, explain_run
from wakeful.kernel.views.ledger import Ledger, ledger_in_steps, ledger_of_job
from wakeful.kernel.views.slots import Slot, find_slot
from wakeful.kernel.views.statistics import Figures, figures
from wakeful.scheduler.callbacks import Callbacks
from wakeful.scheduler.core import Wiring
from wakeful.scheduler.measuring import Measuring
from wakeful.store.jobs import JobFilter
from wakeful.store.records import PageSession, TokenRow
from wakeful.store.runs import RunFilter

if TYPE_CHECKING:
    from wakeful.kernel.actions.run_tokens import RunToken
    from wakeful.kernel.context import Context
    from wakeful.kernel.loop.handlers import Drive
    from wakeful.store.interface import Transaction
    from wakeful.store.records import EventGroup


T = TypeVar("T")


def _undo_some(number: int, cursor: int, tx: Transaction, context: Context) -> undoing.UndoneBatch:
    return undoing.undo_some(tx, context, number, cursor)


class ServerLimits(NamedTuple):
    """What bounds this server's jobs."""

    max_running: int | None
    min_interval: int | None  # milliseconds
    labels: frozenset[str]


class ServerSide(Callbacks):
    """What a caller may read, and what takes several transactions; tokens, figures and stored events.

    All else that callers do is one transaction, an action of the kernel: `Scheduler.transact(action, rights=…)`.
    """

    def __init__(self, wiring: Wiring) -> None:
        super().__init__(wiring)
        self.hidden_kinds = wiring.hidden_kinds
        self.kinds_apart = wiring.kinds_apart
        self.admin_kinds = wiring.admin_kinds

    async def _act(self, rights: Rights, work: Callable[[Transaction, Context], T]) -> T:
        context = self._wiring.identify()._replace(rights=rights)
        return await self._wiring.write(lambda tx: work(tx, context))

    def limits(self) -> ServerLimits:
        """What bounds this server's jobs, as it was started."""
        context = self._wiring.identify()
        return ServerLimits(context.max_running, context.min_interval, context.labels)

    # -- tokens -------------------------------------------------------------------------------------------------------

    async def create_first_token(self, secret: str) -> bool:
        """Make `secret` the token of an admin if this store never had a token; whether it was."""
        return await self._store.write(lambda tx: tokens.create_first(tx, "admin", secret))

    async def find_token(self, secret: str) -> TokenRow | RunToken | PageSession | None:
        """The caller with this token or cookie, or None when it is not valid."""
        finders = (sign_in.find, run_tokens.find, tokens.find)
        return await self._store.read(lambda tx: next((one for find in finders if (one := find(tx, secret))), None))

    async def note_token_use(self, token: TokenRow) -> None:
        """Remember that a token was used now."""
        await self._store.write(lambda tx: tx.access.token_used(token.hash, tx.now))

    def token_path(self) -> Path:
        """The file of the first admin's token, for users who may read files next to the store."""
        path = getattr(self._store, "path", None)
        return Path(f"{path}.token") if path not in (None, ":memory:") else self._store.folder / "admin.token"

    # -- people on pages ----------------------------------------------------------------------------------------------

    async def create_link_code(self, name: str, role: str) -> str:
        """A one-time code that signs `name` in to the dashboard with that role within ten minutes."""
        code = sign_in.new_code()
        await self._store.write(lambda tx: sign_in.store_code(tx, code, name, role))
        return code

    async def redeem_code(self, code: str) -> str | None:
        """The cookie of a new session, for a code that is valid and now used up; None for any other."""
        secret = sign_in.new_session()
        opened = await self._store.write(lambda tx: sign_in.redeem(tx, code, secret))
        return secret if opened is not None else None

    async def sign_in(self, token: str) -> str | None:
        """The cookie of a new session, for a valid token of a person; None for any other."""
        secret = sign_in.new_session()

        def work(tx: Transaction) -> bool:
            found = tokens.find(tx, token)
            return found is not None and sign_in.open_with_token(tx, found, secret) is not None

        return secret if await self._store.write(work) else None

    async def sign_out(self, secret: str) -> None:
        """End a session, on every node."""
        await self._store.write(lambda tx: sign_in.sign_out(tx, secret))

    # -- the whole ----------------------------------------------------------------------------------------------------

    async def get_figures(self) -> Figures:
        return await self._store.read(lambda tx: figures(tx, self.hidden_kinds))

    def measuring(self, per_job: int = 0) -> Measuring:
        """Counts what this process does from here on, for `/metrics`; with the names of so many jobs."""
        return Measuring(self._wiring, per_job)

    def drive_with(self, drive: Drive) -> None:
        """Run handlers with this from here on, such as within a span of a trace."""
        self._wiring.engine.drive = drive

    async def drain_node(self, name: str, rights: Rights, *, drain: bool = True) -> Node:
        """Ask a live node to start no new runs, or to continue; who did is on record."""
        seen = Seen(times=self._wiring.viewpoint().seen.times)

        def work(tx: Transaction, context: Context) -> Node:
            node = drain_node(tx, name, seen, drain=drain)
            what, number = "drain" if drain else "undrain", ids.number_of("node", node.id) or 0
            note_other(tx, origin_of(context), what, number, node.name)
            return node

        return await self._act(rights, work)

    # -- events -------------------------------------------------------------------------------------------------------

    def on_commit(self, listener: Callable[[], None]) -> None:
        """Call `listener` after every transaction of this process that emitted an event; for as long as both live."""
        self._store.on_events(lambda _: listener())

    async def read_events(self, after: int, streams: Sequence[str] | None, limit: int) -> list[EventGroup]:
        """What any process stored after that group, in order."""
        return await self._store.read(lambda tx: tx.events.after(after, streams, limit))

    async def event_ids(self) -> tuple[int, int]:
        """The oldest and the newest group on record; zeros when there is none."""
        return await self._store.read(lambda tx: tx.events.ids())

    # -- what a caller may read ---------------------------------------------------------------------------------------

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

    async def preview_jobs(self, what: str, many: JobSelection, rights: Rights) -> selections.Preview:
        """What `run`, `pause` or `resume` would do to many; nothing is changed."""
        context = self._wiring.identify()._replace(rights=rights)
        return await self._store.read(lambda tx: selections.preview(tx, context, what, many))

    async def hold_all(self, note: str | None, rights: Rights, *, messages: bool = False) -> holding.Held:
        """Start nothing more, on any node, until `release_all`; with `messages`, send nothing either."""
        text = check_note(note)
        return await self._act(rights, lambda tx, context: holding.hold_all(tx, context, text, messages=messages))

    async def release_all(self, rights: Rights) -> holding.Held:
        """End the hold. What waited is put back in steps, so that no other transaction waits for all of it."""
        done = await self._act(rights, holding.release_all)
        await self._put_back(more=done.more)
        return done

    async def _put_back(self, *, more: bool) -> None:
        while more:
            more = await self._wiring.write(holding.put_back)

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
            part = await self._act(rights, partial(_undo_some, number, cursor))
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
