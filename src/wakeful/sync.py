"""The scheduler for scripts and notebooks: the methods of `wakeful.Scheduler` without `await`.

    import wakeful

    with wakeful.sync.Scheduler("sqlite:///wakeful.db") as scheduler:

        @scheduler.job(wakeful.Every("6h"), timeout="10m")
        def backup():
            print("backing up")

        scheduler.run_forever()  # until Ctrl-C

The scheduler has an event loop in a thread of its own, so it also works where another loop is running, as in a
notebook. Its methods may be called from any thread, plain handlers included. Exceptions are raised in the caller.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar, overload

from wakeful.errors import SchedulerError, SchedulerNotOpen
from wakeful.kernel.kinds import AnyHandler
from wakeful.kernel.views.bus import Bus
from wakeful.scheduler import Scheduler as AsyncScheduler
from wakeful.scheduler.loop_thread import NOT_OPEN, OWN_LOOP, LoopThread, Work
from wakeful.scheduler.without_await import SyncAgents, SyncConnectors, SyncWorkflows, documented

__all__ = ["Scheduler"]

P = ParamSpec("P")
T = TypeVar("T")
H = TypeVar("H", bound=AnyHandler)


class Register(Protocol):
    """A decorator that returns the handler as it is."""

    def __call__(self, handler: H, /) -> H: ...


def _blocking(method: Callable[Concatenate[AsyncScheduler, P], Work[T]]) -> Callable[Concatenate[Any, P], T]:
    """An async method of the scheduler, as one that returns when it is done."""

    def call(self: Scheduler, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._loop_thread().call(method(self._scheduler, *args, **kwargs))

    documented(call, method)
    return call


def _plain(method: Callable[Concatenate[AsyncScheduler, P], T]) -> Callable[Concatenate[Any, P], T]:
    """A plain method of the scheduler, called on its loop where it has one."""

    def call(self: Scheduler, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._ask(lambda: method(self._scheduler, *args, **kwargs))

    documented(call, method)
    return call


def _decorator(method: Callable[Concatenate[AsyncScheduler, P], Register]) -> Callable[Concatenate[Any, P], Register]:
    """A method that makes a decorator; also the decorator does its work on the scheduler's loop."""

    def call(self: Scheduler, /, *args: P.args, **kwargs: P.kwargs) -> Register:
        register = method(self._scheduler, *args, **kwargs)
        return lambda handler: self._ask(lambda: register(handler))

    documented(call, method)
    return call


def _constructor(
    method: Callable[Concatenate[AsyncScheduler, P], None],
) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, P], None]]:
    """A constructor with the parameters of the scheduler's own."""

    def typed(init: Callable[..., None]) -> Callable[Concatenate[Any, P], None]:
        documented(init, method)
        return init

    return typed


class Scheduler:
    """`wakeful.Scheduler` without `await`: each method returns when its work is done.

    `with scheduler:` opens the store; nothing fires until `start()` or `run_forever()`.
    """

    @_constructor(AsyncScheduler.__init__)
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._scheduler = AsyncScheduler(*args, **kwargs)
        self._thread: LoopThread | None = None
        self._closing = threading.Lock()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<wakeful.sync.Scheduler {self.url} {self.get_status()}>"

    def open(self, *, create: bool = True) -> None:
        """Open the store, creating it where there is none. Nothing fires yet."""
        if self._thread is None:
            self._thread = LoopThread()
        try:
            self._thread.call(self._scheduler.open(create=create))
        except BaseException:
            self._end_thread(self._thread)
            raise

    def close(self) -> None:
        """Stop if running, without waiting for jobs, and close the store.

        A handler that calls it continues at once: it is closed when that run has ended and is recorded.
        """
        if self._thread is not None:
            self._close(self._thread)

    def _close(self, thread: LoopThread) -> None:
        if thread.is_current():
            raise SchedulerError(OWN_LOOP)
        goes_on = False
        try:
            if not thread.left:
                with contextlib.suppress(SchedulerNotOpen):  # another thread has closed it meanwhile
                    goes_on = thread.call(self._close_or_begin_to())
        finally:
            if goes_on:
                threading.Thread(target=self._close, args=[thread], name="wakeful-close").start()
            else:
                self._end_thread(thread)

    async def _close_or_begin_to(self) -> bool:
        """Whether a handler asks for this, whose run continues."""
        await self._scheduler.close()
        return self._scheduler.get_status() != "stopped"

    def run_forever(self) -> None:
        """Start, and return when the scheduler is stopped, by `stop` or by Ctrl-C.

        The first Ctrl-C waits for running jobs, the second cancels them.
        """
        call = self._loop_thread().begin(self._scheduler.run_forever())
        try:
            call.wait()
        except KeyboardInterrupt:
            try:
                call.cancel()
                call.wait()
            except KeyboardInterrupt:
                self.stop(wait_for_jobs=False)
                call.wait()
        if not call.cancelled():
            call.result()

    @property
    def url(self) -> str:
        """The address of the store this scheduler works on."""
        return self._scheduler.url

    @property
    def events(self) -> Bus:
        """Events as they happen; listeners are called on the scheduler's thread."""
        return self._scheduler.events

    @property
    def agents(self) -> SyncAgents:
        """Agents: apply, request_wake, add_event, get, list, pause, resume, reset_session."""
        return SyncAgents(self._scheduler.agents, self._loop_thread())

    @property
    def connectors(self) -> SyncConnectors:
        """Where messages go: register, touch."""
        return SyncConnectors(self._scheduler.connectors, self._ask, self._loop_thread())

    @property
    def workflows(self) -> SyncWorkflows:
        """Workflows: the methods of `scheduler.workflows`, without `await`."""
        return SyncWorkflows(self._scheduler.workflows, self._loop_thread())

    def add_workflow(self, workflow: Any) -> None:
        """Let this scheduler run a `Workflow`. It is stored when the scheduler starts, or at once where it runs."""

        async def add() -> None:
            await self._scheduler.add_workflow(workflow)

        self._loop_thread().call(add())

    @overload
    def on_job_due(self, kind: str) -> Register: ...
    @overload
    def on_job_due(self, kind: str, handler: H) -> H: ...

    def on_job_due(self, kind: str, handler: AnyHandler | None = None) -> Any:
        """Set the handler of a kind of jobs, as a decorator or with the handler as second argument."""
        if handler is not None:
            return self._ask(lambda: self._scheduler.on_job_due(kind, handler))
        return lambda function: self.on_job_due(kind, function)

    job = _decorator(AsyncScheduler.job)
    start = _blocking(AsyncScheduler.start)
    stop = _blocking(AsyncScheduler.stop)
    add_job = _blocking(AsyncScheduler.add_job)
    add_jobs = _blocking(AsyncScheduler.add_jobs)
    update_job = _blocking(AsyncScheduler.update_job)
    remove_job = _blocking(AsyncScheduler.remove_job)
    pause_job = _blocking(AsyncScheduler.pause_job)
    resume_job = _blocking(AsyncScheduler.resume_job)
    get_job = _blocking(AsyncScheduler.get_job)
    list_jobs = _blocking(AsyncScheduler.list_jobs)
    run_job = _blocking(AsyncScheduler.run_job)
    run_here = _blocking(AsyncScheduler.run_here)
    cancel_run = _blocking(AsyncScheduler.cancel_run)
    retry_run = _blocking(AsyncScheduler.retry_run)
    complete_run = _blocking(AsyncScheduler.complete_run)
    approve_run = _blocking(AsyncScheduler.approve_run)
    reject_run = _blocking(AsyncScheduler.reject_run)
    get_run = _blocking(AsyncScheduler.get_run)
    wait_for_run = _blocking(AsyncScheduler.wait_for_run)
    get_run_log = _blocking(AsyncScheduler.get_run_log)
    get_run_stats = _blocking(AsyncScheduler.get_run_stats)
    log_path = _plain(AsyncScheduler.log_path)
    explain = _blocking(AsyncScheduler.explain)
    is_running = _plain(AsyncScheduler.is_running)
    get_status = _plain(AsyncScheduler.get_status)
    get_state = _plain(AsyncScheduler.get_state)
    get_summary = _blocking(AsyncScheduler.get_summary)
    get_verdict = _blocking(AsyncScheduler.get_verdict)
    running_count = _plain(AsyncScheduler.running_count)
    engine_holder = _plain(AsyncScheduler.engine_holder)
    list_alerts = _blocking(AsyncScheduler.list_alerts)
    ack_alert = _blocking(AsyncScheduler.ack_alert)
    list_actions = _blocking(AsyncScheduler.list_actions)
    undo = _blocking(AsyncScheduler.undo)
    get_ledger = _blocking(AsyncScheduler.get_ledger)
    get_slot = _blocking(AsyncScheduler.get_slot)
    subscribe = _plain(AsyncScheduler.subscribe)
    deliver = _blocking(AsyncScheduler.deliver)
    list_nodes = _blocking(AsyncScheduler.list_nodes)
    drain_node = _blocking(AsyncScheduler.drain_node)
    create_token = _blocking(AsyncScheduler.create_token)
    list_tokens = _blocking(AsyncScheduler.list_tokens)
    revoke_token = _blocking(AsyncScheduler.revoke_token)

    def _loop_thread(self) -> LoopThread:
        if self._thread is None:
            raise SchedulerNotOpen(NOT_OPEN)
        return self._thread

    def _end_thread(self, thread: LoopThread) -> None:
        with self._closing:
            if self._thread is thread:
                self._thread = None
                thread.end()

    def _ask(self, question: Callable[[], T]) -> T:
        async def on_the_loop() -> T:
            return question()

        thread = self._thread
        return question() if thread is None or thread.is_current() else thread.call(on_the_loop())
