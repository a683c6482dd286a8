"""The crash matrix: the process dies before and after every commit of every phase, and in the midst of each handler.

Whatever happens: no second mutation unless reconcile or a person says that the first did not happen, no event lost or
consumed twice, and in the end everything is committed, or waits for a person whose word ends it. `make chaos` prints
all of it as a table.
"""

from __future__ import annotations

import pytest

from tests.workflows.dying import AGAIN, POINTS, die_and_recover
from tests.workflows.mailroom import Mailroom, virtual
from wakeful.testing import run

#: Each point with one of the second deaths, by turns; `make chaos` has them all.
TWICE = [
    pytest.param(point, reconciles, AGAIN[(number + reconciles) % len(AGAIN)], id="-".join(point))
    for number, point in enumerate(POINTS)
    for reconciles in (True, False)
]


@pytest.mark.promise("K9", "K10", "K11", "K14")
@pytest.mark.parametrize("reconciles", [True, False], ids=["reconcile", "person"])
@pytest.mark.parametrize("point", POINTS, ids="+".join)
@virtual
async def test_whenever_the_process_dies_each_mail_is_added_once(room, point, reconciles):
    await die_and_recover(room, [point], reconciles=reconciles)


@pytest.mark.promise("K10", "K11", "K14")
@pytest.mark.parametrize(("point", "reconciles", "again"), TWICE)
def test_so_it_is_when_the_recovery_dies_too(sqlite_scene, point, reconciles, again):
    room = Mailroom(sqlite_scene)
    run(die_and_recover(room, [point, again], reconciles=reconciles), room.clock)
