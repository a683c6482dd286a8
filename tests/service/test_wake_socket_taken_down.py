"""A bell that is taken down, or hung again, while a look is going on."""

from __future__ import annotations

import asyncio

import pytest

from wakeful.store import wake_socket
from wakeful.store.wake_socket import WakeSocket, notify


@pytest.mark.promise("X23")
def test_who_takes_a_bell_down_leaves_the_one_that_hangs_there_by_now(tmp_path):
    path = str(tmp_path / "wakeful.db")
    (tmp_path / "wakeful.db").touch()

    async def heard():
        """Nothing is asked for."""

    async def main():
        first, second = WakeSocket(path), WakeSocket(path)
        first.listen(heard)
        second.listen(heard)
        first.take_down()
        assert wake_socket.socket_path(path).exists()
        second.take_down()
        assert not wake_socket.socket_path(path).exists()

    asyncio.run(main())


@pytest.mark.promise("X23")
def test_a_look_that_is_cut_off_late_does_not_let_two_others_go_on_at_once(tmp_path):
    path = str(tmp_path / "wakeful.db")
    (tmp_path / "wakeful.db").touch()

    async def main():
        let_go, began, looks = asyncio.Event(), asyncio.Event(), []

        async def slow():
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                await let_go.wait()

        async def look():
            looks.append(1)
            began.set()
            await asyncio.Event().wait()

        own = WakeSocket(path)
        for heard in (slow, look):
            own.listen(heard)
            began.clear()
            notify(path)
            await began.wait()
        let_go.set()
        await asyncio.sleep(0.02)
        notify(path)
        await asyncio.sleep(0.02)
        own.take_down()
        return len(looks)

    assert asyncio.run(main()) == 1
