"""The type of `ctx`, for authors who annotate their handlers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, overload

if TYPE_CHECKING:
    import logging
    from datetime import datetime, timedelta

    from wakeful.domains.workflows.authoring import Event, Events

P = ParamSpec("P")
T = TypeVar("T")


class Context(Protocol):
    """What each function of a handler is given as `ctx`. What a function may not do is a LogicError, also if caught.

    >>> @append.prepare
    ... async def prepare(ctx: Context, state: dict[str, Any]) -> Prepared:
    ...     mails = await ctx.peek("mail", limit=10)
    ...     return Prepared(reserve={"mail": [mail.id for mail in mails]})

    - `state`: what the handler returned last, `{}` at first. It is stored when a producer or `next` returns it.
    - `config`: the configuration of the workflow, from `wakeful.yaml`.
    - `run_id`: the id of this run.
    - `log`: a logger named after the handler.
    """

    state: Any
    config: Any
    run_id: str
    log: logging.Logger

    @property
    def approved_by(self) -> str | None:
        """Who approved this change: these reserved events, with this data. None while no person has."""

    @property
    def now(self) -> datetime:
        """The scheduler's time; in tests it is virtual."""

    async def peek(
        self,
        topic: str,
        limit: int = 100,
        *,
        after: Event | str | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> Events:
        """The oldest pending events of a topic that this consumer subscribes to, at most 1,000 at once. For `prepare`.

        `.more` of what it returns says whether there are more; read on with `after`, an event or its id. `where` maps
        `message_id`, or keys of the payload, to the value that is wanted, or to a list of values.
        """

    async def publish(
        self,
        topic: str,
        payload: Any = None,
        *,
        message_id: str | int,
        input: str | None = None,  # noqa: A002 - as authors write it
    ) -> None:
        """Publish an event when this run commits. For producers and `next`.

        A message id that was published before makes no second event. `input` is what `register_input` returned, or the
        input of an event.
        """

    async def register_input(self, source: str, type: str, id: str | int, *, title: str | None = None) -> str:  # noqa: A002
        """Record something from outside that causes events; the id to give to `publish` as `input`. For producers."""

    async def step(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        reconcile: Callable[..., Any] | None = None,
        timeout: str | float | timedelta | None = None,
        approve: str | bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Do something outside once, and return what it returned. For handlers with steps (`@workflow.on`).

        It is on record before `function` is called, and what it returned is on record after it: a later attempt gets
        that, and does not call it again. `reconcile`, called with the same arguments, says whether a step happened
        that was cut off. `timeout` is 5 minutes unless given. `approve`: a question to a person before it is done.
        """

    @overload
    async def call(self, function: Callable[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    @overload
    async def call(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    async def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call a function that reaches the outside, and return what it returns. For all but `next`; in `mutate` once.

        Its failure decides this run, also when it is caught: a connection or a server that is away is tried again.
        """
