"""Every error a user of Wakeful can meet, as one tree.

SchedulerError
├── IntervalParseError      (also ValueError)   a duration that cannot be read
├── InvalidTrigger          (also ValueError)   a trigger that can never work
│   └── TooOften                                it asks for more than the minimum interval of the server gives
├── InvalidJob              (also ValueError)   a definition, payload or option that cannot be stored
├── InvalidSetting          (also ValueError)   a setting, role or configuration that cannot be used
│   └── ConfigError         config/reading      a configuration file that cannot be used; `.faults` has all of it
├── NotFound                (also LookupError)  nothing of that id or name
│   ├── JobNotFound                             no job of that id or name
│   │   └── RunNotFound                         no run of that id, or of that job
│   ├── TokenNotFound                           no valid token of that name
│   ├── NodeNotFound                            no node ever had that name
│   ├── AlertNotFound                           no alert of that id
│   ├── AgentNotFound                           no agent of that name
│   ├── LimitNotFound                           an account that is at no rate limit
│   ├── WorkNotFound                            no work item of that id
│   ├── RequestNotFound                         no request from outside of that id
│   ├── ActionNotFound                          no action of that id
│   ├── SlotNotFound                            no slot of that job at that time
│   ├── DeliveryNotFound                        no delivery of that id
│   ├── ConnectorNotFound                       no connector of that name
│   └── StoreNotFound                           no store at that place
├── AlreadyExists                               the name is taken
│   ├── JobExists                               by another job
│   └── TokenExists                             by another token
├── ChangedSinceRead                            it was edited by someone else first
├── ScheduleTriggerError                        a start was refused; `.context` says why
│   ├── StartRefused                            by the job's kind, such as one over budget
│   └── TooManyHops         agents/hops         too many agents in a row had woken each other
├── CannotUndo                                  too late, or changed since by someone else
├── NodeNotAlive                                a node that is not there, or not one of several, cannot be asked
├── SchedulerShutdownError                      stop() ran out of time; `.context` says how many still run
├── NotAllowed                                  the caller may not do this
│   └── OutboundRefused                         an address from the network leads where it may not
├── QuotaReached                                the caller has as many jobs as it may have
├── QueueFull                                   as many requests wait as may
├── ThreadsBusy                                 calls that never returned have taken all threads for this
├── WrongCallbackToken                          a report about a run without its callback token
├── SchedulerNotOpen                            used before `async with scheduler` or after it
│   └── SchedulerForked                         used in a forked child of the process that opened it
├── StoreError                                  the database: operator's turn
│   ├── StoreLocked                             another server holds it
│   ├── StoreUnusable                           not a database, foreign, newer, corrupt or read-only
│   │   ├── StoreMissing                        a database in which no store was made yet
│   │   └── StoreGone                           its file was removed or replaced while it was in use
│   ├── StoreRefused                            it does not accept what was to be written
│   ├── StoreUnreachable                        the server does not answer, or not us; we continue when it does
│   └── StoreFull                               no space left on the device
│
│   Those of one part of the program, defined in the module named:
├── KeyReused               kernel/actions/idempotency  an idempotency key that was used for another request
├── KeyBusy                 kernel/actions/idempotency  the first request with this key is not done yet
├── ImpossibleTransition    kernel/rules/outcome        a transition that the run's state does not allow
├── Failed                  kernel/rules/outcome        a run's error that has output to keep
│   ├── AgentFailed         agents/handler              an agent's call that failed
│   │   ├── AgentNotStarted  agents/handler             an agent's program that could not be started
│   │   └── PromptRefused    agents/handler             a prompt that cannot be an argument of the program
│   ├── AgentOverloaded     agents/handler              an agent's service that is not available now
│   └── RequestFailed       http/kind                   a request without a good answer
│       └── RequestFailedForNow  http/kind              one that may well have a good one in a minute
├── CommandFailed           command/result              a command without an exit code
│   └── ArgumentsRefused    command/result              one whose arguments the system does not take
├── CommandTimedOut         command/result              a command that ran longer than it may
├── SendingFailed           http/sending                a request without any answer
├── NoSessionServer         agents/client               no server for messages is configured
├── SessionFailed           agents/talking              a session says that it did not work
├── SourceFailed            agents/sources/source       a source of work items that cannot be used
│   ├── SourceAway          agents/sources/source       one that cannot be reached now
│   └── SourceLimited       agents/sources/source       one that asks us to wait
├── NotDelivered            delivery/connector          a message that its target did not take
│   ├── Permanent           delivery/connector          and never will
│   └── Temporary           delivery/connector          and may the next time
│       └── Unclear         delivery/connector          or did, without saying so
├── BotError                delivery/telegram/api       a call to the Bot API that did not work
├── NotPressed              delivery/chat/buttons       the press of a button that does not count
├── DeliveryRefused         delivery/commands           a test that did not arrive
├── TooMuchRemoved          files/applying              a file that would remove more than half of its jobs
│   └── OfAnotherFile       files/applying              one that would remove jobs of another file
├── Unreadable              moving/sources              a source that cannot be imported
├── ApiError                routing/problems            a refusal that only the HTTP server makes
├── CannotListen            api/server                  the port cannot be used
├── NoService               cli/service                 no service is installed
├── ServerRefused           console/remote              what a server answered to a command under WAKEFUL_TOKEN
└── WrongUse                console/failures            the command line cannot be read

A message says what happened, to which thing, and what to do next. `exit_code` is what the command line returns for
the family and `status` what HTTP answers, so both surfaces agree without a table of their own.
"""

from __future__ import annotations

from typing import Any


class SchedulerError(Exception):
    """Base of everything Wakeful raises on purpose."""

    exit_code = 1
    status = 500
    code = "error"
    traced = True  # a run that ends with it keeps where it was raised; False: its message says it all


class IntervalParseError(SchedulerError, ValueError):
    """A duration such as "5m" that cannot be read; `.interval` is the text as given."""

    exit_code = 2
    status = 400
    code = "invalid_interval"

    def __init__(self, message: str, interval: object) -> None:
        super().__init__(message)
        self.interval = interval


class InvalidTrigger(SchedulerError, ValueError):
    """A trigger that is malformed or can never fire; `.field` names the part at fault where there is one."""

    exit_code = 2
    status = 400
    code = "invalid_trigger"

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class TooOften(InvalidTrigger):
    """A trigger that could fire more often than its author may; the message names the limit."""

    exit_code = 4
    code = "min_interval"

    @property
    def detail(self) -> str:
        """The message, and the setting that it comes from."""
        return f"{self}, set by limits.min_interval in the server's configuration."


class InvalidJob(SchedulerError, ValueError):
    """A job definition, payload or option that cannot be stored; nothing was changed."""

    exit_code = 2
    status = 400
    code = "invalid_job"


class InvalidSetting(SchedulerError, ValueError):
    """A setting, a role or a configuration file that cannot be used; nothing was changed."""

    exit_code = 2
    status = 400
    code = "invalid_setting"


class NotFound(SchedulerError, LookupError):
    """Nothing carries that id or name."""

    exit_code = 3
    status = 404
    code = "not_found"


class JobNotFound(NotFound):
    """No job carries that id or name; caught for a run as well, see RunNotFound."""


class RunNotFound(JobNotFound):
    """No run carries that id, or the job has none. Also a JobNotFound: many calls take a job's or a run's id."""


class TokenNotFound(NotFound):
    """No valid token carries that name."""


class NodeNotFound(NotFound):
    """No node ever carried that name."""


class AlertNotFound(NotFound):
    """No alert carries that id."""


class AgentNotFound(NotFound):
    """No agent has that name."""


class LimitNotFound(NotFound):
    """No account of that name is at its rate limit."""


class WorkNotFound(NotFound):
    """No work item of that id."""


class SlotNotFound(NotFound):
    """A job has no slot at that time, or it is no longer on record."""


class RequestNotFound(NotFound):
    """No request from outside of that id."""


class ActionNotFound(NotFound):
    """No action carries that id."""


class DeliveryNotFound(NotFound):
    """No delivery of that id."""


class ConnectorNotFound(NotFound):
    """No connector of that name."""


class StoreNotFound(NotFound):
    """There is no store at that place."""


class AlreadyExists(SchedulerError):
    """The name is taken; nothing was changed."""

    exit_code = 4
    status = 409
    code = "exists"


class JobExists(AlreadyExists):
    """The name belongs to another job."""


class TokenExists(AlreadyExists):
    """The name belongs to another token."""


class ChangedSinceRead(SchedulerError):
    """The job's revision is no longer the one the change was made against."""

    exit_code = 4
    status = 412
    code = "changed"


class ScheduleTriggerError(SchedulerError):
    """A requested start was refused; `.context` carries `job`, `reason` and what else is known."""

    exit_code = 4
    status = 409
    code = "refused"

    def __init__(self, message: str, context: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.context: dict[str, Any] = context or {}


class StartRefused(ScheduleTriggerError):
    """A start by hand that the job's kind does not admit now, such as one over budget."""


class NodeNotAlive(SchedulerError):
    """The request needs a live node, and one among several; nothing was changed."""

    exit_code = 4
    status = 409
    code = "not_alive"


class SchedulerShutdownError(SchedulerError):
    """stop() reached its timeout; `.context` has `timed_out` and `running_count`."""

    code = "shutdown_timeout"

    def __init__(self, message: str, context: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.context: dict[str, Any] = context or {}


class NotAllowed(SchedulerError):
    """The caller may not do this; nothing was changed."""

    exit_code = 4
    status = 403
    code = "forbidden"


class OutboundRefused(NotAllowed):
    """An address that came over the network leads to a private place; the message names the key that allows it."""

    code = "outbound"


class QuotaReached(SchedulerError):
    """The caller has as many jobs as it may have; nothing was changed."""

    exit_code = 4
    status = 409
    code = "quota"


class QueueFull(SchedulerError):
    """As many requests wait as may; this one was not stored."""

    exit_code = 4
    status = 429
    code = "queue_full"


class ThreadsBusy(SchedulerError):
    """Calls that were given up and never returned have taken all threads of this kind of work."""

    status = 503
    code = "threads_busy"


class WrongCallbackToken(SchedulerError):
    """This token does not belong to this run."""

    exit_code = 4
    status = 403
    code = "wrong_token"

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or str(type(self).__doc__))


class CannotUndo(SchedulerError):
    """An action that cannot be taken back: it is too long ago, or what it changed was changed since."""

    exit_code = 4
    status = 409
    code = "cannot_undo"


class SchedulerNotOpen(SchedulerError):
    """The scheduler has no open store: use `async with scheduler:` (or `await scheduler.open()`) around this call."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or str(type(self).__doc__))


class SchedulerForked(SchedulerNotOpen):
    """The scheduler was opened before this process was forked: make and open another one here."""


class StoreError(SchedulerError):
    """The database could not carry out the operation; nothing was half written."""

    status = 503
    code = "store"


class StoreLocked(StoreError):
    """Another process holds what we need."""

    exit_code = 4
    code = "store_locked"


class StoreUnusable(StoreError):
    """The file or server is not a Wakeful store this version can use."""

    code = "store_unusable"


class StoreMissing(StoreUnusable):
    """There is no store in that database yet."""


class StoreGone(StoreUnusable):
    """The store's file was removed or replaced while in use: the engine stops, and nothing is stored any more."""

    code = "store_gone"


class StoreRefused(StoreError):
    """The database does not take what was to be written, and would not next time either; nothing was stored."""

    code = "store_refused"


class StoreUnreachable(StoreError):
    """The database's server does not answer, or accepts no connections right now; jobs continue once it does."""

    code = "store_unreachable"


class StoreFull(StoreError):
    """The disk is full; what was being written is not stored."""

    code = "store_full"
