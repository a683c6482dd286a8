"""`wakeful` that is killed when it has claimed a run of an agent and not started its program."""

from __future__ import annotations

import os
import signal
import sys

from wakeful.domains.agents.handler import AgentKind
from wakeful.surfaces.cli import main


async def die(_self: AgentKind, _run: object, _payload: object) -> None:
    """The run is stored as active, and nothing of it has happened."""
    os.kill(os.getpid(), signal.SIGKILL)


AgentKind._ask = die

if __name__ == "__main__":
    sys.exit(main())
