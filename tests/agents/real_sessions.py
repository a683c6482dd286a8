"""A scheduler on the machine's own clock that talks to a session server."""

from __future__ import annotations

import contextlib

from tests.service.real_time import Watch, make
from wakeful.domains.agents import SessionSettings, install


@contextlib.asynccontextmanager
async def talking(tmp_path, url, **settings):
    """A started scheduler whose session jobs talk to `url`; also what it stores, to wait for."""
    scheduler = make(tmp_path)
    install(scheduler, SessionSettings(url=url, **{"poll_s": (0.02, 0.1), "answer_s": 5.0, **settings}))
    async with scheduler:
        watch = Watch(scheduler)
        await scheduler.start()
        try:
            yield scheduler, watch
        finally:
            await scheduler.stop(wait_for_jobs=False)
