"""What people did, on record, and how it is taken back."""

from __future__ import annotations

from wakeful.kernel.actions.authorization import Rights
from wakeful.kernel.actions.drafts import check_limit
from wakeful.kernel.views.actions import Action, Undone
from wakeful.scheduler.core import Core
from wakeful.scheduler.requests import Requests


class RecordApi(Core):
    """Pauses, resumes, removals and acknowledgements, who made them, and `undo`."""

    async def list_actions(self, *, limit: int = 50) -> list[Action]:
        """What people and programs did, the newest first.

        >>> await scheduler.pause_job("backup")
        >>> (await scheduler.list_actions())[0].what
        'pause'
        """
        check_limit(limit)
        return await Requests(self._wiring()).list_actions(None, limit)

    async def undo(self, id: str | None = None) -> Undone:  # noqa: A002
        """Take an action back, within ten minutes: without an id, the last one made through this scheduler.

        What was changed since stays as it is, and the answer says so; CannotUndo is raised if that is all of it.

        >>> await scheduler.remove_job("backup")
        >>> (await scheduler.undo()).restored
        ['backup']
        """
        requests, rights = Requests(self._wiring()), Rights(self._node_name, None, admin_kinds=True, via="code")
        if id is None:
            id = await requests.latest_action(rights)  # noqa: A001
        return await requests.undo(id, rights)
