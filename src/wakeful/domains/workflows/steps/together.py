"""What runs alongside each other store at about the same time is one work for the store: a workflow has many of them.

A batch is open until the store begins with it; what is asked for until then is part of it, and waits no longer than it
would alone. The work is given all of it, and answers each. Where it fails, each is asked for alone.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")
Work = Callable[["Transaction", "Context", Sequence[Asked]], Sequence["Answer | Exception"]]

MOST = 64  # in one batch


class _Batch(Generic[Asked, Answer]):
    """What is stored together, on behalf of callers on one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.asked: list[Asked] = []
        self.futures: list[asyncio.Future[Answer]] = []
        self.storing: asyncio.Task[None] | None = None
        self._lock = threading.Lock()
        self._open = True

    def join(self, loop: asyncio.AbstractEventLoop, asked: Asked) -> asyncio.Future[Answer] | None:
        """The answer to come; None where it is too late, or would be another loop's."""
        with self._lock:
            if not self._open or loop is not self.loop or len(self.asked) >= MOST:
                return None
            self.asked.append(asked)
            self.futures.append(loop.create_future())
            return self.futures[-1]

    def close(self) -> Sequence[Asked]:
        """All of it: nothing joins it any more."""
        with self._lock:
            self._open = False
            return self.asked


class Together(Generic[Asked, Answer]):
    """One kind of work of one scheduler; an answer that is an exception is raised where it was asked for."""

    def __init__(self, work: Work[Asked, Answer], *, wakes: bool = False) -> None:
        """`wakes`: whether the engine looks at once at what was changed."""
        self._work = work
        self._wakes = wakes
        self._last: _Batch[Asked, Answer] | None = None

    async def store(self, scheduler: Scheduler, asked: Asked) -> Answer:
        """The answer, once it is stored; that continues even if the caller is cancelled."""
        loop = asyncio.get_running_loop()
        future = self._last.join(loop, asked) if self._last is not None else None
        if future is None:
            self._last = batch = _Batch[Asked, Answer](loop)
            future = batch.join(loop, asked)
            batch.storing = loop.create_task(self._store(scheduler, batch))
        assert future is not None  # noqa: S101 - a new batch takes it
        return await future

    async def _store(self, scheduler: Scheduler, batch: _Batch[Asked, Answer]) -> None:
        try:
            answers = await self._answers(scheduler, batch)
        except BaseException as error:
            answers = [error] * len(batch.close())
            if isinstance(error, asyncio.CancelledError):
                raise
        finally:
            if self._last is batch:
                self._last = None
            for future, answer in zip(batch.futures, answers, strict=True):
                if future.done():
                    continue
                if isinstance(answer, asyncio.CancelledError):
                    future.cancel()
                elif isinstance(answer, BaseException):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)

    async def _answers(self, scheduler: Scheduler, batch: _Batch[Asked, Answer]) -> Sequence[Any]:
        def work(tx: Transaction, context: Context) -> Any:
            asked = batch.close()
            return self._only(tx, context, asked[0]) if len(asked) == 1 else self._work(tx, context, asked)

        try:
            answer = await scheduler.transact(work, wakes=self._wakes)
        except Exception as error:  # noqa: BLE001 - carried to who asked for it
            asked = batch.close()
            return [error] if len(asked) == 1 else [await self._alone(scheduler, one) for one in asked]
        return [answer] if len(batch.asked) == 1 else answer

    async def _alone(self, scheduler: Scheduler, asked: Asked) -> Answer | Exception:
        try:
            return await scheduler.transact(lambda tx, context: self._only(tx, context, asked), wakes=self._wakes)
        except Exception as error:  # noqa: BLE001 - as above
            return error

    def _only(self, tx: Transaction, context: Context, asked: Asked) -> Answer:
        """The work for one; where the answer is an exception, nothing is stored."""
        (answer,) = self._work(tx, context, [asked])
        if isinstance(answer, Exception):
            raise answer
        return answer
