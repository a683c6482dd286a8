"""The server of the demo, as a process of its own: `python -m wakeful.demo.serving FOLDER`.

Its standard input is the socket that the supervisor listens on, as inetd gives it. Connections that are made while no
server runs wait there for the next one.
"""

from __future__ import annotations

import asyncio
import getpass
import logging
import os
import signal
import socket
import sys
from pathlib import Path

from wakeful.clock import sleep
from wakeful.config.schema import config_model, section_of
from wakeful.demo.books import workflow
from wakeful.demo.fleet import make_scheduler
from wakeful.demo.history import live_a_week
from wakeful.demo.moved_clock import MovedClock
from wakeful.demo.place import DemoFolder, is_orphan
from wakeful.demo.routes import make_router
from wakeful.demo.story import play
from wakeful.demo.tricks import Tricks
from wakeful.domains import domains
from wakeful.errors import SchedulerShutdownError
from wakeful.kernel.actions.sign_in import store_code
from wakeful.kernel.domain import load
from wakeful.routing.settings import ServerSettings
from wakeful.scheduler import Scheduler
from wakeful.surfaces.api.server import HttpServer, first_token
from wakeful.surfaces.web.rendering import environment
from wakeful.surfaces.web.routes import nothing_here, routers

LOOK_S = 0.5
PATIENCE_S = 1.0


def main(folder: Path) -> None:
    """Make the week, if it is not there, and serve until SIGTERM or the supervisor is gone."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    logging.getLogger("wakeful.runs").setLevel(logging.CRITICAL)  # what fails here fails on purpose
    place, parent = DemoFolder(folder), os.getppid()
    is_first = not place.read().lived
    if is_first:
        logging.disable()  # nobody reads what is logged of a week that is made at once
        live_a_week(place)
        logging.disable(logging.NOTSET)
    asyncio.run(serve(place, parent, is_first=is_first))


async def serve(place: DemoFolder, parent: int, *, is_first: bool) -> None:
    """An ordinary server, with the routes of the demo and a clock that can be moved."""
    bound = socket.socket(fileno=os.dup(0))
    bound.setblocking(False)  # noqa: FBT003 - the standard library's own shape
    host, port = bound.getsockname()[:2]
    settings = ServerSettings(host=host, port=port)
    clock = MovedClock(place.read().offset_ms)
    scheduler = make_scheduler(place, clock)
    scheduler.add_workflow(workflow)
    tricks = Tricks(scheduler, place, clock)
    server = HttpServer(scheduler, settings, bound, [*routers(), make_router(place, tricks)], nothing_here)
    environment().globals["demo"] = True
    _install_domains(scheduler, settings)
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    async with scheduler:
        await first_token(scheduler)
        if is_first:
            await scheduler.transact(lambda tx, _: store_code(tx, place.read().code, getpass.getuser(), "admin"))
        await scheduler.start()
        await server.begin()
        story = asyncio.get_running_loop().create_task(play(scheduler, place))
        while not over.is_set() and not is_orphan(parent):
            await sleep(LOOK_S)
        story.cancel()
        await _stop(scheduler, server)


def _install_domains(scheduler: Scheduler, settings: ServerSettings) -> None:
    known = config_model()()
    for domain in domains():
        if domain.install is not None:
            load(domain.install)(scheduler, section_of(known, domain), settings)


async def _stop(scheduler: Scheduler, server: HttpServer) -> None:
    server.hurry()
    _, stopped = await asyncio.gather(server.end(), scheduler.stop(timeout=PATIENCE_S), return_exceptions=True)
    if isinstance(stopped, BaseException) and not isinstance(stopped, SchedulerShutdownError):
        raise stopped


if __name__ == "__main__":
    main(Path(sys.argv[1]))
