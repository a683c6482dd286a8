"""Every kind of alert is declared with its meaning, and the docs list the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tests.sample
from tests.kernel.scene import virtual
from wakeful import domains
from wakeful.domains import declare
from wakeful.kernel.engine.alerts import MEANINGS, OF_A_JOB, UNSERVED, open_alert
from wakeful.store import schema_version, tables

CLI_GUIDE = Path(__file__).parents[2] / "docs" / "cli.md"


@virtual
async def test_an_alert_of_a_kind_that_no_domain_declares_is_refused(scene):
    async with scene.scheduler() as scheduler:
        with pytest.raises(ValueError, match="There is no alert kind 'surprise'"):
            await scheduler.transact(lambda tx, context: open_alert(tx, context, "surprise", "a", "boo"))
        assert await scheduler.list_alerts() == []


def test_a_domain_makes_its_kinds_known(monkeypatch):
    # Its tables stay unknown to the stores of other tests.
    monkeypatch.setattr(schema_version, "FOLDERS", dict(schema_version.FOLDERS))
    monkeypatch.setattr(tables, "PRECIOUS", dict(tables.PRECIOUS))
    declare(tests.sample.domain)
    assert MEANINGS["no_stamps"] == "there are letters and no stamps"


def test_the_guide_lists_every_kind_with_its_meaning():
    section = CLI_GUIDE.read_text().split("### alert\n")[1].split("### ")[0]
    listed = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", section, re.MULTILINE))
    ours = {kind for domain in domains.domains() if domain.name != "letters" for kind in domain.alerts}
    assert listed == {kind: text for kind, text in MEANINGS.items() if kind != "no_stamps"}
    assert set(OF_A_JOB) | set(UNSERVED) | ours <= set(listed)
