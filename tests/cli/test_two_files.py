"""Two configuration files on one store: neither removes what the other has without a person's word."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.promise("X15")

STORE = "store: sqlite:///.wakeful/wakeful.db\n"
A = f"{STORE}jobs:\n  one: {{every: 1h, command: [echo]}}\n  two: {{every: 1h, command: [echo]}}\n"
B = f"{STORE}jobs:\n  two: {{every: 1h, command: [echo]}}\n  three: {{every: 1h, command: [echo]}}\n"


@pytest.fixture
def files(here):
    (here / "a.yaml").write_text(A)
    (here / "b.yaml").write_text(B)
    return here


def names(wakeful):
    return sorted(job["name"] for job in wakeful("list", "--json").json)


def test_a_second_file_that_would_remove_jobs_of_the_first_is_refused_and_told_about_fleets(wakeful, files):
    assert wakeful("apply", "a.yaml").code == 0
    refused = wakeful("apply", "b.yaml")
    assert (refused.code, refused.out) == (4, "")
    assert refused.err == (
        f"Error: {files}/b.yaml would remove 1 job that {files}/a.yaml has (one): both are of the fleet 'main'. To "
        "keep the jobs of both, give this file a fleet of its own (fleet: b). If it replaces the other, run "
        f"wakeful apply {files}/b.yaml --yes.\n"
    )
    planned = wakeful("plan", "b.yaml")
    assert (planned.code, planned.out.splitlines()) == (5, ["+ three  every hour", "- one"])
    assert "give this file a fleet of its own (fleet: b)" in planned.err
    assert names(wakeful) == ["one", "two"]
    assert wakeful("apply", "b.yaml", "--yes").code == 0
    assert names(wakeful) == ["three", "two"]


def test_files_with_fleets_of_their_own_live_side_by_side(wakeful, files):
    wakeful("apply", "a.yaml")
    (files / "b.yaml").write_text(f"fleet: b\n{B.replace('two', 'four')}")
    assert wakeful("apply", "b.yaml").code == 0
    assert wakeful("apply", "a.yaml").out.startswith("Nothing to do")
    assert names(wakeful) == ["four", "one", "three", "two"]


def test_a_file_that_was_moved_or_takes_nothing_away_is_no_second_one(wakeful, files):
    wakeful("apply", "a.yaml")
    (files / "b.yaml").write_text(A + "  three: {every: 1h, command: [echo]}\n")
    assert wakeful("apply", "b.yaml").code == 0
    (files / "b.yaml").rename(files / "c.yaml")
    (files / "c.yaml").write_text(A)
    assert wakeful("apply", "c.yaml").code == 0
    assert names(wakeful) == ["one", "two"]


def test_a_file_that_removes_most_of_its_own_jobs_is_told_about_fleets_too(wakeful, files):
    wakeful("apply", "a.yaml")
    (files / "a.yaml").write_text(f"{STORE}jobs: {{five: {{every: 1h, command: [echo]}}}}\n")
    refused = wakeful("apply", "a.yaml")
    assert refused.code == 4
    assert "would remove 2 of its 2 jobs" in refused.err
    assert "give this one a fleet of its own (fleet: NAME)" in refused.err


@pytest.mark.parametrize("name", ["wakeful.yaml", "second-file.yaml"])
def test_init_names_the_fleet(wakeful, here, name):
    assert wakeful("init").code == 0
    if name != "wakeful.yaml":
        assert wakeful("init", name).code == 0
    said = "# fleet: main" if name == "wakeful.yaml" else "fleet: second-file"
    assert any(line.startswith(said) for line in (here / name).read_text().splitlines())
    assert wakeful("apply").code == 0
    assert wakeful("apply", name).code == 0
    assert names(wakeful) == (["hello"] if name == "wakeful.yaml" else ["hello", "second-file-hello"])
