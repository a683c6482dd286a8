"""A week in the life of a store: every way in and out, one after the other, as a person and an agent go through them.

Days pass in virtual time with the real engine; commands are typed at the time the week has reached.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import pytest

from tests.agents.virtual_agents import PLACE, VirtualAgents
from tests.mcp.desks import Tools
from tests.store.postgres_server import postgres_url
from tests.store.test_old_stores import STORES
from wakeful import Scheduler, alerts
from wakeful.clock import SystemClock
from wakeful.testing import VirtualClock, run

MONDAY = datetime(2026, 11, 23, 6, 0, tzinfo=UTC)
CRONTAB = """\
MAILTO=ops@example.org
30 5 * * * /opt/shop/sync.sh
0 2 * * * /opt/shop/backup.sh --full
@reboot /opt/shop/start.sh
"""
FILE = f"""\
connectors:
  desk: {{type: file, path: desk}}
agents:
  reporter:
    description: Looks after the shop
    runner: {{python: "{PLACE}"}}
    deliver: desk
    budget: {{runs_per_day: 7}}
    self_schedule: ask
    heartbeat: {{enabled: true, every: 3h, prompt: Look around.}}
    schedules:
      standup: {{cron: "0 9 * * *", timezone: UTC, prompt: Summarise yesterday.}}
"""
PROMPT = "Check the prices."


class Week:
    """The store, what agents did in it, and the time it has reached."""

    def __init__(self, folder, wakeful, monkeypatch):
        self.folder, self._wakeful, self._patch = folder, wakeful, monkeypatch
        self.clock = VirtualClock(MONDAY)
        self.agents = VirtualAgents()
        self.asked, self.desk = [], []

    def type(self, *words, code=0):
        """A command at this time of the week."""
        with self._patch.context() as patch:
            patch.setattr(SystemClock, "now", lambda _: self.clock.now())
            answer = self._wakeful(*words)
        assert answer.code == code, (words, answer)
        return answer

    def days(self, days, check=None):
        """A server runs for so long."""

        async def live():
            async with Scheduler(f"sqlite:///{self.folder}/.wakeful/wakeful.db", clock=self.clock) as scheduler:
                scheduler.on_job_due("command", self._command)
                scheduler.connectors.register("desk", self._deliver)
                await alerts.configure(scheduler, to="desk", after=1)
                _ = scheduler.agents  # from here on it runs them
                tools = Tools(scheduler, self.agents)
                tools.does["reporter"] = self._work
                await scheduler.start()
                await self.clock.sleep(days * 86_400)
                if check is not None:
                    await check(scheduler)

        run(live(), self.clock)

    async def _deliver(self, message):
        self.desk.append(message.text)

    async def _command(self, run):
        """What the programs of the crontab and of the old store come to."""
        if run.job == "sync":
            raise RuntimeError("the shop does not answer")
        return {"exit_code": 0}

    async def _work(self, by):
        """The agent's own wish, once: to look at prices every day."""
        if not self.asked:
            self.asked.append(await by("schedule", name="prices", when="every day at 11:30", prompt=PROMPT))


@pytest.fixture
def week(here, wakeful, monkeypatch):
    return Week(here, wakeful, monkeypatch)


def standing(answer):
    """Of each job in a listing: whether it may run, and when next."""
    return {job["name"]: (job["status"], job["next_run_at"]) for job in answer.json}


@pytest.mark.promise("X6", "X7", "X10", "X17", "X33")
def test_a_week_from_an_old_store_and_a_crontab_to_another_database_and_back(week):
    _begin(week)
    week.days(1.6)
    _look_and_approve(week)
    week.days(2.42)  # Friday, half past six: nothing waits
    assert week.agents.prompts.count(PROMPT) == 2
    _move(week)


def _begin(week):
    """Monday: the store of an older version is opened, the crontab comes in, and so does the fleet."""
    script = (STORES / "0.2.0.sqlite.sql").read_text(encoding="utf-8")
    with closing(sqlite3.connect(week.folder / ".wakeful" / "wakeful.db")) as database:
        database.executescript(script)
    for name in ("tick", "broken"):  # every second
        week.type("remove", name, "--yes")
    known = {job["name"] for job in week.type("list", "--json").json}
    assert known == {"nightly", "once", "late", "yearly"}
    assert (week.folder / ".wakeful" / "wakeful.db.schema-31").exists()  # a copy of it as it was

    (week.folder / "my.crontab").write_text(CRONTAB)
    report = week.type("import", "crontab", "my.crontab", "--json", code=5).json
    assert [entry["status"] for entry in report["entries"]] == ["differs", "differs", "refused"]
    week.type("import", "crontab", "my.crontab", "--yes")
    assert {job["name"] for job in week.type("list", "--json").json} == {*known, "sync", "backup"}

    (week.folder / "wakeful.yaml").write_text(FILE)
    week.type("apply", "--yes")


def _look_and_approve(week):
    """Tuesday: what failed and what ran out was delivered; what the agent asks for waits, and a person says yes."""
    [asked] = week.asked
    assert asked.data["status"] == "waits_for_approval"
    assert any("sync" in text and "the shop does not answer" in text for text in week.desk)
    assert any("reporter" in text and "budget" in text for text in week.desk)
    shown = week.type("agent", "show", "reporter").out
    assert "reporter is over budget: 7 of 7 runs are used today" in shown
    assert "reached on" not in shown  # which is for a budget that will be
    assert "refused as over_budget" in week.type("explain", "reporter.wake").out

    [question] = week.type("approvals", "--json").json
    assert question["job"] == "reporter.prices"
    assert PROMPT not in week.agents.prompts
    week.type("approve", question["run"], "--note", "fine")
    assert standing(week.type("list", "--json", "--all"))["reporter.prices"][0] == "idle"


def _move(week):
    """Friday: a backup restored elsewhere waits for a person; an export fills another database; nothing is lost."""
    before = standing(week.type("list", "--json", "--all"))
    week.type("backup", "saved.db")
    week.type("restore", "saved.db", "--db", "second.db")
    assert week.type("status", "--json", "--db", "second.db").json["hold"]["messages"] is True
    assert standing(week.type("list", "--json", "--all", "--db", "second.db")).keys() == before.keys()
    week.type("resume", "--all", "--db", "second.db")

    url = postgres_url()
    week.type("export", "out")
    assert len((week.folder / "out" / "runs.ndjson").read_text().splitlines()) > 10
    week.type("import", "wakeful", "out", "--yes", "--db", url)
    assert standing(week.type("list", "--json", "--all", "--db", url)) == before
    assert json.loads(week.type("import", "wakeful", "out", "--json", "--db", url).out)["entries"]
