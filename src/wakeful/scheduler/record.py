"""What became of every slot, what people did, and how that is taken back."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from wakeful.kernel.actions.drafts import check_limit
from wakeful.scheduler.core import Core
from wakeful.triggers.moments import read_moment

if TYPE_CHECKING:
    from wakeful.kernel.views.actions import Action, Undone
    from wakeful.kernel.views.ledger import Ledger
    from wakeful.kernel.views.slots import Slot


class RecordApi(Core):
    """The ledger of slots; pauses, resumes, removals and acknowledgements, who made them, and `undo`."""

    async def list_actions(self, *, limit: int = 50) -> list[Action]:
        """What people and programs did, the newest first.

        >>> await scheduler.pause_job("backup")
        >>> (await scheduler.list_actions())[0].what
        'pause'
        """
        check_limit(limit)
        return await self.server_side.list_actions(None, limit)

    async def undo(self, id: str | None = None) -> Undone:  # noqa: A002
        """Undo an action within ten minutes: without an id, the last one made through this scheduler.

        Later changes are kept, and the answer lists them; CannotUndo is raised if nothing is left to undo.

        >>> await scheduler.remove_job("backup")
        >>> (await scheduler.undo()).restored
        ['backup']
        """
        requests, rights = self.server_side, self._identify().rights
        if id is None:
            id = await requests.latest_action(rights)  # noqa: A001
        return await requests.undo(id, rights)

    async def get_ledger(self, job: str | None = None, *, since: str | timedelta | datetime = "7d") -> Ledger:
        """What became of every slot that was due, of one job or of all: the parts add up, and none is unaccounted for.

        `since` is a duration up to now, or a time.

        >>> ledger = await scheduler.get_ledger(since="30d")
        >>> ledger.total.unaccounted
        0
        """
        from wakeful.kernel.views.ledger import read_since

        return await self.server_side.get_ledger(job, partial(read_since, since), self._identify().rights)

    async def get_slot(self, job: str, slot: datetime | str) -> Slot:
        """What became of one slot of a job, by its nominal time. SlotNotFound is raised if it has none there.

        >>> job = await scheduler.get_job("backup")
        >>> (await scheduler.get_slot("backup", job.next_run_at)).fate
        'ahead'
        """
        return await self.server_side.get_slot(job, read_moment(slot, "slot"), self._identify().rights)
