"""The workflows that a configuration file lists, as `wakeful plan` shows and `wakeful apply` deploys them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from wakeful import ids
from wakeful.domains.workflows.deploying import Deployment, deploy, plan_deployment, remove_workflow
from wakeful.domains.workflows.files import WorkflowList, is_unlisted, same_name
from wakeful.domains.workflows.loading import CannotLoad, FileRef, load_file
from wakeful.domains.workflows.removed import uncertain_changes
from wakeful.domains.workflows.tables import WorkflowVerbs
from wakeful.domains.workflows.words import answer_commands
from wakeful.errors import SchedulerError
from wakeful.kernel.domain import FileChanges

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction


class ListedWorkflows:
    """All that can be loaded of them, checked; what cannot is reported and left as it is."""

    def __init__(self, scheduler: Scheduler, listed: WorkflowList) -> None:
        self._listed = listed
        self._wanted: list[Deployment] = []
        self._wrong: list[str] = []
        for ref in listed.refs:
            found = self._load(scheduler, ref)
            taken = next((one for one in self._wanted if not isinstance(found, str) and one.name == found.name), None)
            if taken is not None:
                self._wrong.append(f"{ref.path.name}: {same_name(taken.name, taken.source)}")
            elif isinstance(found, str):
                self._wrong.append(found)
            else:
                self._wanted.append(found)

    def _load(self, scheduler: Scheduler, ref: FileRef) -> Deployment | str:
        found = load_file(ref)
        if isinstance(found, CannotLoad):
            return f"{ref.path.name}: {found.message} (the trace: wakeful workflow check {ref.path})"
        try:
            wanted = plan_deployment(scheduler, found, "file", forced=True)
        except SchedulerError as error:
            return f"{ref.path.name}: {error}"
        return wanted._replace(owner=self._listed.owner)

    def plan(self, tx: Transaction | None) -> FileChanges:
        """What applying them would do; `tx` is None where there is no store yet."""
        stored = {row.name: row for row in tx.of(WorkflowVerbs).all()} if tx is not None else {}
        create = [one.name for one in self._wanted if one.name not in stored]
        update = {
            one.name: (stored[one.name].version or None, one.version)
            for one in self._wanted
            if one.name in stored and stored[one.name].version != one.version
        }
        named = {one.name for one in self._wanted}
        gone = [name for name, row in stored.items() if tx and name not in named and is_unlisted(tx, row, self._listed)]
        return FileChanges(
            tuple(create),
            {name: {"version": versions} for name, versions in update.items()},
            tuple(gone),
            len(self._wanted) - len(create) - len(update),
            tuple(self._wrong),
            tuple(self._questions(tx, gone, update)) if tx is not None else (),
        )

    def _questions(self, tx: Transaction, gone: Sequence[str], update: Collection[str]) -> Iterator[str]:
        """Changes in flight of handlers that would be removed: a person will be asked whether they happened."""
        kept = {f"{one.name}.{handler.name}" for one in self._wanted for handler in one.handlers}
        for name in (*gone, *update):
            for attempt in uncertain_changes(tx, name):
                if f"{name}.{attempt.handler}" not in kept:
                    [command] = answer_commands(name, ["settle"], ids.run_text(attempt.id))
                    yield (
                        f"{name}.{attempt.handler} is removed although it is not known whether its last change "
                        f"happened. Settle it, before or after: {command}."
                    )

    def apply(self, tx: Transaction, context: Context) -> FileChanges:
        """Deploy new and changed workflows, and remove those that this file no longer lists."""
        changes = self.plan(tx)
        for wanted in self._wanted:
            deploy(tx, context, wanted)
        for name in changes.remove:
            remove_workflow(tx, context, name)
        return changes
