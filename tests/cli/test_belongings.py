"""What waits for agents that are gone, at the keyboard: named by `plan` and `apply`, listed, and moved."""

from __future__ import annotations

import pytest

AGENT = 'runner: {start: ["true"]}, work: {source: queue}, schedules: {next: {every: 1h, work: true}}'
GONE = (
    "2 work items and 1 event wait for writer, which is not there: until it is back, or until wakeful agent move writer"
)


@pytest.fixture
def with_agents(here):
    def write(*names):
        agents = "".join(f"  {name}: {{{AGENT}}}\n" for name in names)
        (here / "wakeful.yaml").write_text(f"store: sqlite:///.wakeful/wakeful.db\nagents:\n{agents}")

    return write


def test_plan_and_apply_name_what_waits_for_agents_that_come_and_go(wakeful, with_agents):
    with_agents("keeper", "writer")
    folded = "Note: {} of agents not shown: use --json.\n"
    assert wakeful("plan").err == folded.format("2 wake jobs")
    wakeful("apply")
    for title in ("one", "two"):
        wakeful("work", "add", "writer", title)
    wakeful("agent", "event", "writer", "The door is open.")
    assert wakeful("plan").err == ""
    with_agents("keeper")
    planned = wakeful("plan")
    assert (planned.code, planned.err) == (5, f"Note: {GONE} NAME.\n{folded.format('1 wake job')}")
    assert wakeful("plan", "--json").json["notes"] == [f"{GONE} NAME."]
    assert f"Note: {GONE} NAME.\n" in wakeful("apply").err
    assert f"Note: {GONE} NAME.\n" in wakeful("plan").err  # for as long as it waits
    assert wakeful("agent", "list").err == f"Note: {GONE} NAME.\n"
    with_agents("keeper", "writer")
    back = "Note: 2 work items and 1 event wait for writer, from before it was removed.\n"
    planned = wakeful("plan").err
    assert (planned, back in wakeful("apply").err) == (back + folded.format("1 wake job"), True)
    assert wakeful("plan").err == wakeful("agent", "list").err == ""


def test_what_waits_for_an_agent_that_was_renamed_is_listed_and_moved(wakeful, with_agents):
    with_agents("keeper", "writer")
    wakeful("apply")
    one, two = (wakeful("work", "add", "writer", title).out.strip() for title in ("one", "two"))
    wakeful("agent", "event", "writer", "The door is open.")
    with_agents("keeper", "reporter")
    assert f"{GONE} reporter." in wakeful("plan").err
    wakeful("apply")
    assert [item["id"] for item in wakeful("work", "list", "--orphaned", "--json").json] == [two, one]
    assert "writer (gone)" in wakeful("work", "list", "writer").out
    assert wakeful("work", "move", one, "nobody").code == 3
    assert wakeful("work", "move", one, "reporter").out == f"{one} is ready for reporter.\n"
    assert wakeful("agent", "move", "writer", "reporter").out == (
        "1 work item and 1 event moved from writer to reporter.\n"
    )
    moved = wakeful("agent", "move", "writer", "reporter")
    assert (moved.code, moved.err) == (3, "Error: There is no agent 'writer'.\n")
    assert wakeful("work", "list", "--orphaned").out.startswith("No work items in ")
    assert {item["agent"] for item in wakeful("work", "list", "--json").json} == {"reporter"}
    assert wakeful("agent", "show", "reporter", "--json").json["events_waiting"] == 1


def test_an_item_that_the_other_agent_has_already_is_left_where_it_was(wakeful, with_agents):
    with_agents("keeper", "writer")
    wakeful("apply")
    for agent in ("keeper", "writer"):
        wakeful("work", "add", agent, "one", "--id", "T-1")
    moved = wakeful("agent", "move", "writer", "keeper")
    assert moved.out == "0 work items and 0 events moved from writer to keeper.\n"
    assert moved.err.startswith("Note: 1 work item left with writer: keeper has them already,")
    assert wakeful("agent", "move", "writer", "keeper", "--json").json == {
        "agent": "writer", "to": "keeper", "items": 0, "events": 0, "left": 1,
    }  # fmt: skip
