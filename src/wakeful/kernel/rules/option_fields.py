"""The options of a job, each in three lines: its type in Python, its default, and its description for every surface.

Models, schemas, keys of files, flags, completion, help and docs are loops over `OPTIONS`. `option_reading` has the
readers, `options` what is done with the values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, NamedTuple, TypedDict

from wakeful.fields import COUNT, DURATION, LASTING, NUMBER, Field, Flag, list_of, map_of, one_of
from wakeful.kernel.rules import option_reading as reading
from wakeful.kernel.rules.option_reading import DELIVER_ON, MAX_WORD, MOST, PRIORITIES, RETRY_DELAYS
from wakeful.triggers import Trigger

Duration = str | float | timedelta
"""`"5m"`, a number of seconds, or a timedelta."""
IfExists = Literal["error", "update", "keep"]


class CatchUp(TypedDict):
    """How late a missed start may still be made up for: `{"within": "2h"}`."""

    within: Duration


class Retry(TypedDict, total=False):
    """Retries of a failed run: how many or after which delays, and for which errors."""

    times: int
    delays: Sequence[Duration]
    on: Literal["any", "transient"]


class Kept(TypedDict, total=False):
    """How long the ended runs of a job are kept, and how many of them."""

    age: Duration
    runs: int


class JobOptions(TypedDict, total=False):
    """The options of a job. None, or leaving one out, means the default.

    A `Duration` is a text such as `"5m"` or `"1h30m"`, a number of seconds, or a `timedelta`.
    """

    timeout: Duration | None
    catch_up: Literal["once", "skip"] | CatchUp | None
    overlap: Literal["skip", "queue", "cancel_other"] | None
    retry: int | Sequence[Duration] | Retry | None
    backoff: Sequence[Duration] | None
    max_errors: int | None
    error_span: Duration | None
    on_crash: Literal["recover", "skip", "resume"] | None
    lanes: Mapping[str, int] | None
    labels: Sequence[str] | None
    approval: bool | None
    priority: int | None
    deliver: str | Mapping[str, str] | None
    retention: Kept | None
    bounded: bool | None


class JobChanges(JobOptions, total=False):
    """What `update_job` can change: the parts of a job and all its options."""

    name: str
    trigger: Trigger
    kind: str
    payload: Any
    owner: str | None
    enabled: bool


class OptionValues(NamedTuple):
    """One job's choices; times in milliseconds."""

    timeout: int = 7_200_000
    catch_up: str | int = "once"  # or how late a missed slot may still be run
    overlap: str = "skip"
    retry: tuple[int, ...] | None = None  # None: the trigger's own default (`once` retries, others do not)
    retry_on: str = "transient"
    backoff: tuple[int, ...] = (30_000, 60_000, 300_000, 900_000, 3_600_000)
    max_errors: int = 5  # 0: never disabled
    error_span: int = 0  # ... and not before they have gone on for so long
    on_crash: str = "recover"
    lanes: tuple[tuple[str, int], ...] = ()
    labels: tuple[str, ...] = ()
    approval: bool = False  # every start waits for a person
    priority: int = 0  # who starts first of what is due, and of what waits for a lane: the higher
    deliver: tuple[str, str] | None = None  # where its results are sent, and which of them
    retention: tuple[int | None, int | None] | None = None  # for how long ended runs are kept, and how many
    bounded: bool = False  # its trigger came from outside, and obeys the server's minimum interval

    def retry_delays(self, trigger_type: str) -> tuple[int, ...]:
        """After how long each further attempt at the same slot is made."""
        if self.retry is not None:
            return self.retry
        return RETRY_DELAYS if trigger_type == "once" else ()

    @property
    def recovers(self) -> bool:
        """Whether a run that a crash cut off is run again."""
        return self.on_crash != "skip"


_CONNECTOR = {"type": "string", "pattern": r"^[a-z0-9][a-z0-9_-]{0,63}$"}
_LABEL = {
    "type": "string",
    "pattern": r"^[^,\s]([^,]*[^,\s])?$",
    "maxLength": MAX_WORD,
    "description": "a word without commas",
}
_TIMES = {**COUNT, "maximum": MOST}
_DELAYS = list_of(DURATION, most=MOST)
_RETRY = map_of({}, {"times": _TIMES, "delays": _DELAYS, "on": one_of(*reading.RETRY_ON)})
_LANES = {
    "type": "object",
    "additionalProperties": {"type": "integer", "minimum": 1, "maximum": 1_000_000},
    "propertyNames": {"minLength": 1, "maxLength": MAX_WORD},
    "maxProperties": MOST,
}
_OVERLAP, _ON_CRASH = ("skip", "queue", "cancel_other"), ("recover", "skip", "resume")
_WORD = Flag("POLICY", "word")

# fmt: off
OPTIONS = (
    Field("timeout", reading.read_duration, DURATION,
          "End a run that takes longer (default: 2h).",
          "30m", LASTING, reading.write_duration),
    Field("catch_up", reading.read_catch_up,
          {"anyOf": [one_of(*reading.CATCH_UP), map_of({"within": DURATION}), DURATION["anyOf"][0]]},
          "What missed starts get: one run for all (`once`, default), none (`skip`), or one if at most 2h late (`2h`).",
          "2h", Flag("POLICY", "catch_up"), reading.write_catch_up),
    Field("overlap", reading.read_word(*_OVERLAP), one_of(*_OVERLAP),
          "If it is due while it runs: `skip` (default), `queue` or `cancel_other`.",
          "queue", _WORD),
    Field("retry", reading.read_retry, {"anyOf": [{**_TIMES, "description": "how often"}, _DELAYS, _RETRY]},
          "Retries of a failed run: how many, or the delay before each.",
          2, Flag("N", "retry")),
    Field("backoff", reading.read_delays, list_of(DURATION, least=1, most=MOST),
          "How long the next start waits after one error, two in a row, and so on (default: 30s,1m,5m,15m,1h).",
          ["1m", "5m", "15m"], Flag("DELAYS", "delays"), lambda delays: [reading.write_duration(ms) for ms in delays]),
    Field("max_errors", reading.read_count, COUNT,
          "Disable the job after this many errors in a row (default: 5; 0: never).",
          3, NUMBER),
    Field("error_span", reading.read_duration, DURATION,
          "Disable the job only if the errors in a row have also lasted this long.",
          "1d", LASTING, reading.write_duration),
    Field("on_crash", reading.read_word(*_ON_CRASH), one_of(*_ON_CRASH),
          "What follows a run that a crash cut off: `recover` (default) or `resume` runs it again, `skip` does not.",
          "skip", _WORD),
    Field("lanes", reading.read_lanes, _LANES,
          "Limits shared with other jobs: at most so many runs at once in each lane.",
          {"gpu": 1}, Flag("KEY=N", "lane", many=True, name="--lane"), dict),
    Field("labels", reading.read_label_list, list_of(_LABEL, most=MOST),
          "Run only on nodes that have all of these labels.",
          ["gpu"], Flag("LABEL", many=True, name="--label"), list),
    Field("approval", reading.read_flag, {"type": "boolean"},
          "Every start waits for a person.",
          example=True, flag=Flag(name="--approval/--no-approval")),
    Field("priority", reading.read_priority,
          {"type": "integer", "minimum": PRIORITIES[0], "maximum": PRIORITIES[-1]},
          "From -100 to 100 (default: 0): of what is due, the higher starts first. Above 0 is for admins.",
          10, Flag("N", "number")),
    Field("deliver", reading.read_deliver,
          {"anyOf": [_CONNECTOR, map_of({"to": _CONNECTOR}, {"on": one_of(*DELIVER_ON)})]},
          "Where results are sent: a connector, or where and which of them.",
          {"to": "phone", "on": "failure"}, Flag("CONNECTOR"), lambda said: {"to": said[0], "on": said[1]}),
    Field("retention", reading.read_retention,
          {**map_of({}, {"age": DURATION, "runs": {**COUNT, "minimum": 1}}), "minProperties": 1},
          "How long ended runs of this job are kept, and how many (default: the retention of the server).",
          {"age": "7d", "runs": 100}, Flag("AGE,RUNS", "kept"), reading.write_retention),
)
# fmt: on
"""What users may write. The order is that of the docs and the help."""
INTERNAL = (
    Field("bounded", reading.read_flag, {}, "Whether the minimum interval applies; set by the server.", example=True),
)
"""What is stored like an option, and is the server's to say."""
