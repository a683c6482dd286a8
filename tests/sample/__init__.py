"""A sample domain: letters that are posted, stamped when they are claimed, and counted when they are done.

It uses every part of the seam, is registered by one line (`domains.register("tests.sample")`), and is the example of
docs/extending.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from wakeful import InvalidJob
from wakeful.fields import Field, Flag
from wakeful.kernel.domain import Domain
from wakeful.kernel.engine.alerts import close_alert, open_alert
from wakeful.kernel.hooks import Refused
from wakeful.kernel.kinds import Kind

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.kernel.rules.outcome import Result
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, JobState, RunRow

LETTER = "letter"


def _check(payload: Any) -> None:
    if not isinstance(payload, dict) or not isinstance(payload.get("to"), str):
        raise InvalidJob('A letter needs an address: {"to": "Ada"}.')


def _redact(payload: Any) -> Any:
    return {**payload, "to": "***"}


def _admit(tx: Transaction, context: Context, job: JobDef, state: JobState) -> Refused | None:
    """No more letters than there are stamps."""
    from tests.sample.tables import Letters

    if tx.of(Letters).stamps() > 0:
        return None
    open_alert(tx, context, "no_stamps", "post", "There are no stamps left: buy some.")
    return Refused("no_stamps", "no stamps are left")


def _claimed(tx: Transaction, context: Context, job: JobDef, run: RunRow) -> dict[str, Any]:
    """A stamp belongs to the run from the moment it is claimed."""
    from tests.sample.tables import Letters

    close_alert(tx, context, "no_stamps", "post")
    return {"stamp": tx.of(Letters).take_stamp(context.new_id(), job.id, run.id, tx.now)}


def _ended(tx: Transaction, context: Context, job: JobDef, run: RunRow, result: Result) -> None:
    """A letter that did not arrive gives its stamp back."""
    from tests.sample.tables import Letters

    letter = tx.of(Letters).end(run.id, arrived=result.outcome == "success")
    if letter is not None:
        tx.events.emit("letter", {"type": "sent" if result.outcome == "success" else "returned", "letter": letter})


def _prune(tx: Transaction, before: int, limit: int) -> int:
    from tests.sample.tables import Letters

    return tx.of(Letters).prune(before, limit)


FIELDS = (
    Field(
        "letter",
        lambda _, value: {"to": str(value)},
        {"type": "string"},
        "Send a letter to this address.",
        "Ada",
        Flag("ADDRESS"),
        stored="to",
    ),
    Field(
        "express",
        lambda key, value: {key: value is True},
        {"type": "boolean"},
        "Send it at once.",
        example=True,
        flag=Flag(name="--express/--no-express"),
    ),
)
domain = Domain(
    "letters",
    kinds=(
        Kind(
            LETTER,
            check_payload=_check,
            admin_only=True,
            redact=_redact,
            admit=_admit,
            claimed=_claimed,
            ended=_ended,
            fields="tests.sample:FIELDS",
        ),
        Kind("post", internal=True),
    ),
    migrations=Path(__file__).parent / "schema",
    job_tables=("letters",),
    precious_tables=("letters",),
    prune=_prune,
    id_prefixes={"letter": "ltr"},
    streams=("letter",),
    alerts={"no_stamps": "there are letters and no stamps"},
    skip_reasons={"no_stamps": "there were no stamps"},
    start_reasons={"posted": "a letter was put into the box"},
    section="letters",
    settings="tests.sample.configuration:LetterSettings",
    install="tests.sample.configuration:install",
    routes="tests.sample.routes:router",
    commands="tests.sample.commands:app",
)
