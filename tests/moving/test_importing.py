"""`wakeful import`: a report first, then all of it or nothing, and nothing twice."""

from __future__ import annotations

import shutil

import pytest

from tests.moving.test_readers import AT, FOUND, SAMPLES
from wakeful.moving.formats import READERS


def source(form, here):
    """A copy of a sample that this test may change."""
    there = here / "from" / AT[form]
    if (SAMPLES / AT[form]).is_dir():
        shutil.copytree(SAMPLES / AT[form], there)
    else:
        there.parent.mkdir(parents=True)
        shutil.copy(SAMPLES / AT[form], there)
    return there


def importable(form):
    return sorted(name for name, status in FOUND[form].items() if status != "refused")


@pytest.mark.promise("X10")
@pytest.mark.parametrize("form", READERS)
def test_without_yes_nothing_is_changed_and_5_says_that_there_is_something(wakeful, here, store, form):
    answer = wakeful("import", form, source(form, here))
    assert answer.code == 5
    assert not store.exists()
    assert not (here / "wakeful.yaml").exists()
    marks = {line.split("  ")[0][2:]: line[0] for line in answer.out.splitlines() if line[0] in "+~!"}
    meaning = {"maps": "+", "differs": "~", "refused": "!"}
    assert marks == {name: meaning[status] for name, status in FOUND[form].items()}
    assert "Nothing was changed" in answer.out


@pytest.mark.promise("X10")
@pytest.mark.parametrize("form", READERS)
def test_imported_twice_nothing_is_there_twice(wakeful, here, form):
    path = source(form, here)
    done = wakeful("import", "auto", path, "--yes")
    assert done.code == 0, done.err
    names = [job["name"] for job in wakeful("list", "--json").json]
    assert set(importable(form)) <= set(names)
    assert {name for name in names if not name.endswith(".wake")} == set(importable(form))
    again = wakeful("import", form, path, "--yes")
    assert (again.code, again.out.splitlines()[-1].startswith("Imported 0 jobs.")) == (0, True)
    assert [job["name"] for job in wakeful("list", "--json").json] == names
    looked = wakeful("import", form, path)
    assert looked.code == 0
    assert "There is nothing to import" in looked.out


@pytest.mark.promise("X10")
@pytest.mark.parametrize("form", [form for form in READERS if form != "halo"])
def test_into_a_file_writes_what_passes_check_and_stores_the_same_jobs(wakeful, here, form):
    path = source(form, here)
    assert wakeful("import", form, path, "--into", "wakeful.yaml").code == 0
    checked = wakeful("check")
    assert (checked.code, checked.out.strip().endswith("wakeful.yaml: valid")) == (0, True), checked.out
    text = (here / "wakeful.yaml").read_text()
    assert "# from " in text
    assert f"# Imported by wakeful import {form}" in text
    again = wakeful("import", form, path, "--into", "wakeful.yaml")
    assert again.code == 0
    assert {line.split()[1] for line in again.out.splitlines() if line.startswith("= ")} == set(importable(form))
    assert (here / "wakeful.yaml").read_text() == text
    assert wakeful("apply", "--db", "file.db").code == 0
    assert wakeful("import", form, path, "--yes", "--db", "direct.db").code == 0
    of_file, direct = (
        {job["name"]: job for job in wakeful("list", "--json", "--db", db).json} for db in ("file.db", "direct.db")
    )
    assert of_file.keys() == direct.keys()
    for name, job in of_file.items():
        for part in ("kind", "schedule", "payload", "options", "enabled"):
            assert job[part] == direct[name][part], (name, part)


def test_a_file_that_exists_keeps_what_it_has_and_gets_the_rest(wakeful, here):
    (here / "wakeful.yaml").write_text(
        "# mine\nstore: sqlite:///x.db\njobs:\n    hello: {every: 1h, command: [echo]}   # first\n"
        '    backup: {every: 6h, command: ["true"]}\n\n# the end\nconnectors:\n  log: {type: log}\n'
    )
    answer = wakeful("import", "crontab", source("crontab", here), "--into", "wakeful.yaml")
    assert answer.code == 0, answer.err
    assert "= backup" in answer.out  # the file's own stays
    text = (here / "wakeful.yaml").read_text()
    assert text.startswith("# mine\nstore: sqlite:///x.db\njobs:\n    hello: {every: 1h, command: [echo]}   # first\n")
    assert text.endswith("\n\n# the end\nconnectors:\n  log: {type: log}\n")
    assert text.count("backup:") == 1
    assert "\n    # from user.crontab:6\n    poll:\n" in text
    assert wakeful("check").code == 0


def test_a_file_with_a_mistake_is_left_as_it_is(wakeful, here):
    text = "jobs:\n  a: {every: never, command: [echo]}\n"
    (here / "wakeful.yaml").write_text(text)
    answer = wakeful("import", "crontab", source("crontab", here), "--into", "wakeful.yaml")
    assert answer.code == 1
    assert (here / "wakeful.yaml").read_text() == text
    (here / "link.yaml").symlink_to(here / "wakeful.yaml")
    assert wakeful("import", "crontab", source("systemd", here), "--into", "link.yaml").code == 1
    assert sorted(path.name for path in here.iterdir() if path.name.startswith(".wakeful-")) == []


def test_a_job_of_another_meaning_under_the_same_name_is_not_touched(wakeful, here):
    wakeful("add", "backup", "--every", "1h", "--", "true")
    answer = wakeful("import", "crontab", source("crontab", here), "--yes")
    assert answer.code == 0
    assert "! backup  a job of this name exists" in answer.out
    assert wakeful("show", "backup", "--json").json["schedule"] == "every hour"
    assert {job["name"] for job in wakeful("list", "--json").json} == {"backup", "poll", "mail", "date", "echo"}


def test_the_report_is_also_json(wakeful, here):
    answer = wakeful("import", "auto", source("crontab", here), "--json")
    assert answer.code == 5
    data = answer.json
    assert data["format"] == "crontab"
    assert data["entries"][0] == {
        "source": "user.crontab:5",
        "name": "backup",
        "status": "maps",
        "job": {
            "cron": "0 2 * * *",
            "command": ["/bin/bash", "-c", "/usr/local/bin/backup.sh --full >> /var/log/backup.log 2>&1"],
            "cwd": "~",
            "env": {"PATH": "/usr/local/bin:/usr/bin:/bin"},
            "catch_up": "skip",
        },
        "agent": None,
        "exists": False,
        "notes": [],
    }
    assert [entry["status"] for entry in data["entries"]].count("refused") == 3
    assert wakeful("import", "crontab", here / "from/crontab/user.crontab", "--yes", "--json").json["imported"] == 5


def test_disabled_jobs_stay_disabled_and_paused_ones_do_not_run(wakeful, here):
    wakeful("import", "apscheduler3", source("apscheduler3", here), "--yes")
    assert wakeful("show", "paused", "--json").json["status"] == "disabled"


def test_an_imported_job_runs(wakeful, here):
    (here / "crontab").write_text('@daily tr a-z A-Z%shout at ${HOME:+the} "moon"\n')
    assert wakeful("import", "crontab", "crontab", "--yes").code == 0
    (here / "home").mkdir()
    ran = wakeful("run", "tr")
    assert (ran.code, ran.out.splitlines()[0]) == (0, 'SHOUT AT ${HOME:+THE} "MOON"')


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["tea", "x"], 2, "FORMAT is crontab, systemd,"),
        (["crontab", "nothing"], 1, "nothing does not exist."),
        (["auto", "nothing"], 1, "nothing does not exist."),
        (["systemd", "crontab"], 1, "crontab is no timer"),
        (["halo", "crontab"], 1, "crontab is not a SQLite file."),
        (["wakeful", "crontab"], 1, "crontab is not an export"),
        (["wakeful", ".", "--into", "x.yaml"], 2, "--into is for other formats"),
        (["auto", "notes.txt"], 1, "notes.txt looks like nothing that can be imported"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(wakeful, here, argv, code, said):
    (here / "crontab").write_text("@daily true\n")
    (here / "notes.txt").write_text("Dear diary,\nnothing happened.\n")
    answer = wakeful("import", *argv)
    assert answer.code == code
    assert said in answer.err
    assert len(answer.err.splitlines()) == 1


def test_an_empty_crontab_has_nothing_to_import(wakeful, here):
    (here / "crontab").write_text("# nothing yet\n\n")
    answer = wakeful("import", "crontab", "crontab")
    assert (answer.code, answer.out) == (0, "There is nothing to import from crontab.\n")
