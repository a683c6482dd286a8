"""What a configuration refers to is used only if no other user could have put it there or changed it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.test_trust import NOBODY, OPEN_TO_ALL, STICKY, as_another, give_away
from wakeful.callables import load_function
from wakeful.console.store_location import find_place
from wakeful.domains.workflows.loading import CannotLoad, load_file, read_ref
from wakeful.errors import InvalidJob, InvalidSetting, StoreUnusable
from wakeful.references import looked_up
from wakeful.trust import distrust_below

JOB = "jobs: {planted: {every: 1h, command: ['true']}}\n"
WORKFLOW = """
from wakeful import Interval, Workflow
from helpers import WORD
open({trace!r}, "w").close()
workflow = Workflow("filed")

@workflow.producer(Interval("1h"))
async def poll(ctx, state): ...
"""


def config(here: Path, text: str) -> Path:
    path = here / "wakeful.yaml"
    path.write_text(text)
    return path


@as_another
@pytest.mark.parametrize("pattern", ["conf.d/*.yaml", "conf.d/one.yaml", "*/one.yaml"])
@pytest.mark.parametrize("what", ["file", "folder"])
def test_an_included_file_that_another_user_wrote_or_could_write_is_not_used(here, wakeful, way, pattern, what):
    file = config(here, f"include: ['{pattern}']\n")
    included = here / "conf.d" / "one.yaml"
    included.parent.mkdir()
    included.write_text(JOB)
    assert wakeful("plan", str(file)).code == 5
    give_away(included if what == "file" else included.parent, way)
    for command in ("check", "plan", "apply"):
        said = wakeful(command, str(file))
        assert said.code == 1, command
        assert f"{included} is not used because" in said.out + said.err
    assert "planted" not in wakeful("list").out


@pytest.mark.parametrize("mode", [OPEN_TO_ALL, STICKY])
def test_a_file_dropped_into_an_open_folder_adds_no_job(here, wakeful, mode):
    file = config(here, "include: ['conf.d/*.yaml']\njobs: {mine: {every: 1h, command: ['true']}}\n")
    (here / "conf.d").mkdir()
    assert wakeful("apply", str(file)).code == 0
    (here / "conf.d" / "planted.yaml").write_text(JOB)
    (here / "conf.d").chmod(mode)
    assert "conf.d is writable by everybody" in wakeful("apply", str(file), "--yes").err
    assert "mine" in wakeful("list").out
    assert "planted" not in wakeful("list").out


@as_another
def test_an_env_file_that_another_user_wrote_or_could_write_is_not_used(here, wakeful, way):
    file = config(here, "env_file: secrets.env\nserver: {public_url: '${URL}'}\n")
    secrets = here / "secrets.env"
    secrets.write_text("URL=https://example.org\n")
    assert wakeful("check", str(file)).code == 0
    give_away(secrets, way)
    said = wakeful("check", str(file))
    assert said.code == 1
    assert f"env_file {secrets} is not used because it " in said.out


@as_another
def test_a_value_is_not_taken_from_a_file_that_another_user_wrote_or_could_write(here, wakeful, way):
    file = config(here, "server: {public_url: '${file:url.txt}'}\n")
    value = here / "url.txt"
    value.write_text("https://example.org\n")
    assert wakeful("check", str(file)).code == 0
    give_away(value, way)
    said = wakeful("check", str(file))
    assert said.code == 1
    assert f"public_url needs the file {value}, which is not used because it " in said.out


def test_a_value_that_is_mounted_for_reading_alone_may_belong_to_anybody(here, monkeypatch):
    value = here / "url.txt"
    value.write_text("https://example.org\n")
    value.chmod(OPEN_TO_ALL)
    with pytest.raises(InvalidSetting, match="is writable by everybody"):
        looked_up("file:url.txt", here, {})
    monkeypatch.setattr(os, "statvfs", lambda _: type("Mounted", (), {"f_flag": os.ST_RDONLY}))
    assert looked_up("file:url.txt", here, {}) == "https://example.org"


@as_another
def test_an_env_file_of_a_job_that_another_user_could_write_fails_its_run(here, store, wakeful, way):
    secrets = here / "job.env"
    secrets.write_text("WORD=planted\n")
    made = wakeful("add", "job", "--every", "1h", "--env-file", str(secrets), "--", "sh", "-c", "echo $WORD")
    assert made.code == 0, made.err
    give_away(secrets, way)
    said = wakeful("run", "job")
    assert said.code != 0
    assert "is not used because it" in said.out + said.err
    assert "planted" not in said.out


@as_another
@pytest.mark.parametrize("what", ["invoices.py", "helpers.py", "."])
def test_a_workflow_is_not_loaded_from_files_that_another_user_could_write(here, wakeful, way, what):
    code, trace = here / "code", here / "loaded"
    code.mkdir()
    (code / "invoices.py").write_text(WORKFLOW.format(trace=str(trace)))
    (code / "helpers.py").write_text("WORD = 1\n")
    assert not isinstance(load_file(read_ref("invoices.py", code)), CannotLoad)
    trace.unlink()
    give_away(code / what, way)
    file = config(here, "workflows: [code/invoices.py]\n")
    assert "is not used because" in wakeful("plan", str(file)).err
    assert "is not used because" in wakeful("workflow", "check", "code/invoices.py").out
    assert not trace.exists()


@as_another
def test_a_function_is_not_loaded_from_a_file_that_another_user_could_write(here, way):
    file = here / "mine.py"
    file.write_text("def reply(turn): return 'x'\n")
    give_away(file, way)
    with pytest.raises(InvalidJob, match="is not used because it"):
        load_function(f"{file}:reply")


@as_another
@pytest.mark.parametrize("what", [".local/share/wakeful/wakeful.db", ".local/share/wakeful", ".local", ""])
def test_ones_own_store_is_refused_where_another_user_could_have_made_it(here, wakeful, way, what, monkeypatch):
    (here / ".wakeful").rmdir()
    home = here / "other home"
    (home / ".local/share/wakeful").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    assert wakeful("add", "job", "--every", "1h", "--", "true").code == 0
    store = home / ".local/share/wakeful/wakeful.db"
    give_away(home / what, way)
    for command in (["list"], ["add", "other", "--every", "1h", "--", "true"], ["run", "job"]):
        said = wakeful(*command)
        assert said.code != 0
        assert f"The store {store} is not used because" in said.err
    assert wakeful("list", "--db", str(store)).code == 0, "a store that is named is used as it is"


@as_another
def test_no_store_is_made_in_the_home_of_another_user(here, way):
    (here / ".wakeful").rmdir()
    home = here / "ada"
    home.mkdir()
    give_away(home, way)
    for name in ("HOME", "XDG_DATA_HOME"):
        with pytest.raises(StoreUnusable, match=f"because {home} (belongs to the user|is writable by)"):
            find_place(None, {name: str(home)}, here)


@as_another
def test_a_store_that_a_configuration_names_is_refused_where_another_user_could_have_made_it(here, wakeful, way):
    file = config(here, "store: sqlite:///data/jobs.db\n")
    (here / "data").mkdir()
    assert wakeful("add", "job", "--every", "1h", "--", "true").code == 0
    give_away(here / "data", way)
    said = wakeful("list")
    assert said.code != 0
    assert "jobs.db is not used because" in said.err
    assert file.exists()


def test_who_owns_the_configuration_that_is_named_may_own_what_it_refers_to(here):
    if os.geteuid() == 0:
        for name in ("wakeful.yaml", "a.yaml"):
            (here / name).touch()
            os.chown(here / name, NOBODY, NOBODY)
        assert distrust_below(here / "a.yaml") is not None
        assert distrust_below(here / "a.yaml", named_by=here / "wakeful.yaml") is None
    (here / "b.yaml").touch(0o666)
    (here / "b.yaml").chmod(0o666)
    assert distrust_below(here / "b.yaml", named_by=here / "wakeful.yaml") == "it is writable by everybody"


def test_a_link_is_as_good_as_what_holds_its_target(here):
    shared = here / "shared"
    shared.mkdir()
    (shared / "real.env").touch()
    (here / "link.env").symlink_to(shared / "real.env")
    assert distrust_below(here / "link.env") is None
    shared.chmod(OPEN_TO_ALL)
    assert distrust_below(here / "link.env") == f"{shared} is writable by everybody"


def test_nobody_can_write_to_what_is_mounted_for_reading_alone(here, monkeypatch):
    here.joinpath("a.yaml").touch()
    here.chmod(OPEN_TO_ALL)
    assert distrust_below(here / "a.yaml") == f"{here} is writable by everybody"
    monkeypatch.setattr(os, "statvfs", lambda _: type("Mounted", (), {"f_flag": os.ST_RDONLY}))
    assert distrust_below(here / "a.yaml") is None
