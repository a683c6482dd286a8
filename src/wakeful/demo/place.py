"""The folder of a demo: its store, what its phone has received, and what must survive a kill of its server."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

PHONE_KEPT = 12


class State(NamedTuple):
    """What the server reads again when it starts."""

    code: str
    """The one-time code of the link that was printed."""
    offset_ms: int = 0
    """How far the clock of the demo is ahead, because it slept."""
    broken: bool = False
    """Whether the phone refuses what is sent to it."""
    kills: int = 0
    lived: bool = False
    """Whether the week before is made."""
    visited_at: int | None = None
    """When the first page was opened, by the machine's own clock: the story begins there."""
    steps: int = 0
    """How many steps of the story have been taken."""


class DemoFolder:
    """The folder. The server is the only one to write here, once the supervisor has made it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def url(self) -> str:
        return f"sqlite:///{self.file}"

    @property
    def file(self) -> Path:
        return self.folder / "wakeful.db"

    def read(self) -> State:
        return State(**json.loads((self.folder / "demo.json").read_text(encoding="utf-8")))

    def write(self, state: State) -> State:
        """Replace what is there, so that a reader finds the old or the new."""
        draft = self.folder / "demo.json.new"
        draft.write_text(json.dumps(state._asdict()), encoding="utf-8")
        draft.replace(self.folder / "demo.json")
        return state

    def change(self, **what: Any) -> State:
        return self.write(self.read()._replace(**what))

    # -- the phone ----------------------------------------------------------------------------------------------------

    def receive(self, message: dict[str, Any]) -> None:
        """Keep a message, and the last ones before it; the same one again is kept once."""
        kept = [one for one in self.received() if one["id"] != message["id"]]
        draft = self.folder / "phone.json.new"
        draft.write_text(json.dumps([*kept, message][-PHONE_KEPT:]), encoding="utf-8")
        draft.replace(self.folder / "phone.json")

    def received(self) -> list[dict[str, Any]]:
        """What the phone has, the oldest first."""
        path = self.folder / "phone.json"
        found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
        return found


def is_orphan(parent: int) -> bool:
    """Whether the process that started this one is gone."""
    return os.getppid() != parent
