"""The agents of the demo: scripts that answer as agents would, without a key and without a network."""

from __future__ import annotations

from random import Random

from wakeful.clock import sleep
from wakeful.counting import counted
from wakeful.domains.agents import Reply, Turn

OK = "HEARTBEAT_OK"
#: A question that costs more than triage may spend in a day.
WHOLE_YEAR = "Sort the mail of the whole year."

_SEEN = (
    "The certificate of shop.example expires in 9 days.",
    "The disk of db-1 is 81 % full, 3 % more than a week ago.",
    "Two orders have waited for payment since yesterday.",
)
_DONE = ("merged", "answered", "closed", "moved to Friday")


def chance_of(*parts: object) -> Random:
    """The same numbers for the same run, so that every demo has much the same week."""
    return Random(" ".join(map(str, parts)))


async def watcher(turn: Turn) -> Reply:
    """Looks around; mostly there is nothing to say."""
    chance = chance_of("watcher", turn.run.due_at)
    await sleep(chance.uniform(1.0, 2.5))
    text = chance.choice(_SEEN) if chance.random() < 0.08 else OK
    return Reply(text, turn.session, cost=0.004, tokens_in=900, tokens_out=12)


async def reporter(turn: Turn) -> Reply:
    """Writes a digest of the day."""
    chance = chance_of("reporter", turn.run.due_at)
    await sleep(1.5)
    lines = [
        f"{counted(chance.randint(3, 14), 'pull request')}, {chance.randint(1, 3)} of them {chance.choice(_DONE)}.",
        f"{counted(chance.randint(20, 60), 'letter')} sorted. The shop sold {counted(chance.randint(1, 9), 'lamp')}.",
        "The backup is complete.",
    ]
    return Reply("\n".join(lines), turn.session, cost=0.06, tokens_in=5200, tokens_out=340)


async def triage(turn: Turn) -> Reply:
    """Sorts what came in; its budget ends before the day does."""
    chance = chance_of("triage", turn.run.due_at)
    await sleep(chance.uniform(1.0, 4.0))
    if WHOLE_YEAR in turn.prompt:
        return Reply("Sorted 4,102 letters of a year.", turn.session, cost=2.0, tokens_in=410_000, tokens_out=9_000)
    return Reply(
        f"{counted(chance.randint(0, 5), 'letter')} sorted.", turn.session, cost=0.03, tokens_in=2600, tokens_out=90
    )
