"""A file that is found upward is used only if no other user could have put it there or changed it."""

from __future__ import annotations

import asyncio
import grp
import os
import pwd
import stat
from pathlib import Path

import pytest

from wakeful import Scheduler
from wakeful.console.store_location import find_place, nearest_config
from wakeful.kernel.engine.long_output import keep_long_output
from wakeful.kernel.rules.outcome import Result
from wakeful.surfaces.api.server import first_token
from wakeful.surfaces.cli import main
from wakeful.trust import _is_own_group, distrust

NOBODY = 65534
OPEN_TO_ALL = 0o777
STICKY = 0o1777

as_another = pytest.mark.parametrize("way", ["by owner", "by mode"] if os.geteuid() == 0 else ["by mode"])


def give_away(path: Path, way: str) -> None:
    """Let another user own it, or write it; only root can do the first."""
    if way == "by owner":
        os.chown(path, NOBODY, NOBODY)
    else:
        path.chmod(OPEN_TO_ALL if path.is_dir() else 0o666)


@pytest.fixture
def project(here, monkeypatch):
    """A directory of the user's own, two levels below one that may hold something planted."""
    (here / ".wakeful").rmdir()
    folder = here / "shared" / "own"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def plant(folder: Path) -> tuple[Path, Path]:
    """A store and a configuration that would be found from below."""
    (folder / ".wakeful").mkdir()
    (folder / "wakeful.yaml").write_text("store: sqlite:///planted.db\n")
    return folder / ".wakeful", folder / "wakeful.yaml"


@as_another
def test_a_planted_store_is_passed_over_with_one_sentence(project, wakeful, way):
    store, config = plant(project.parent)
    config.unlink()
    give_away(store, way)
    said = wakeful("add", "job", "--every", "1h", "--", "true")
    assert said.code == 0
    assert list(store.iterdir()) == []
    assert said.err.count(f"{store} is ignored because it ") == 1
    assert "name it with --db" in said.err
    assert (Path(os.environ["HOME"]) / ".local" / "share" / "wakeful" / "wakeful.db").exists()


@as_another
def test_a_planted_configuration_is_passed_over_with_one_sentence(project, wakeful, way):
    store, config = plant(project.parent)
    store.rmdir()
    give_away(config, way)
    said = wakeful("add", "job", "--every", "1h", "--", "true")
    assert said.code == 0
    assert not (project.parent / "planted.db").exists()
    assert said.err.count(f"{config} is ignored because it ") == 1
    assert "name it with --config" in said.err
    assert wakeful("check").code == 2


@as_another
@pytest.mark.parametrize("mode", [OPEN_TO_ALL, STICKY])
def test_a_directory_others_can_write_lends_no_trust_to_what_lies_in_it(project, capsys, way, mode):
    store, config = plant(project.parent)
    give_away(project.parent, way)
    if way == "by mode":
        project.parent.chmod(mode)
    found = find_place(None, os.environ, project)
    assert (found.config, store in Path(str(found.path)).parents) == (None, False)
    warnings = capsys.readouterr().err
    assert f"{store} is ignored because {project.parent} " in warnings
    assert f"{config} is ignored because {project.parent} " in warnings


@as_another
def test_a_directory_others_can_write_between_here_and_the_place_spoils_it(project, capsys, way):
    store, config = plant(project.parent.parent)
    give_away(project.parent, way)
    assert nearest_config(project) is None
    assert store not in Path(str(find_place(None, os.environ, project).path)).parents
    assert f"{config} is ignored because {project.parent} " in capsys.readouterr().err


@as_another
def test_a_database_of_another_user_in_ones_own_folder_is_passed_over(project, capsys, way):
    store, config = plant(project)
    config.unlink()
    (store / "wakeful.db").touch()
    give_away(store / "wakeful.db", way)
    assert store not in Path(str(find_place(None, os.environ, project).path)).parents
    assert f"{store} is ignored because it " in capsys.readouterr().err


@as_another
def test_a_link_leads_to_nothing_others_can_write(project, tmp_path, way):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (project / ".wakeful").symlink_to(elsewhere)
    assert distrust(project / ".wakeful", project) is None
    give_away(elsewhere, way)
    assert distrust(project / ".wakeful", project) is not None


def test_a_nearer_place_that_is_passed_over_does_not_hide_a_trusted_one_above(project):
    store, config = plant(project.parent)
    near, nearer = plant(project)
    give_away(near, "by mode")
    give_away(nearer, "by mode")
    config.write_text("limits: {max_running: 2}\n")
    found = find_place(None, os.environ, project)
    assert (found.path, found.config) == (store / "wakeful.db", config)


@as_another
def test_a_place_that_is_named_is_used_no_matter_who_owns_it(project, wakeful, way, monkeypatch):
    store, config = plant(project.parent)
    config.write_text("store: sqlite:///.wakeful/wakeful.db\n")
    give_away(store, way)
    give_away(config, way)
    monkeypatch.setenv("WAKEFUL_DB", str(store / "wakeful.db"))
    assert wakeful("list").err == ""
    assert wakeful("list", "--db", str(store / "wakeful.db")).err == ""
    assert wakeful("check", str(config)).err == ""


def test_what_belongs_to_root_is_trusted_by_everybody():
    assert Path("/etc").stat().st_uid == 0
    assert distrust(Path("/etc/passwd"), Path("/etc")) is None


@pytest.mark.parametrize(
    ("uid", "group", "trusted"),
    [
        (1000, ("ada", []), True),
        (1000, ("ada", ["ada"]), True),
        (1000, ("ada", ["ben"]), False),
        (1000, ("staff", []), False),
        (0, ("root", []), False),
    ],
)
def test_a_group_that_is_the_users_alone_may_write(here, monkeypatch, uid, group, trusted):
    place = here / "place"
    place.mkdir(mode=0o770)
    place.chmod(0o770)
    gid = place.stat().st_gid
    name = "root" if uid == 0 else "ada"
    monkeypatch.setattr(pwd, "getpwuid", lambda _: pwd.struct_passwd((name, "x", uid, gid, "", "/", "/bin/sh")))
    monkeypatch.setattr(grp, "getgrgid", lambda _: grp.struct_group((group[0], "x", gid, group[1])))
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    assert _is_own_group(place, gid) == trusted


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o077, 0o777])
def test_what_is_made_for_a_store_is_its_owners_alone_whatever_the_umask(here, umask):
    before = os.umask(umask)
    try:
        assert main(["add", "job", "--every", "1h", "--db", "new/deep/jobs.db", "--", "true"]) == 0
        assert main(["run", "job", "--db", "new/deep/jobs.db"]) == 0
    finally:
        os.umask(before)
    made = [here / "new", *(here / "new").rglob("*")]
    assert here / "new" / "deep" / "jobs.db.lock" in made
    for path in made:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_a_lock_that_is_a_link_is_refused_and_what_it_names_is_untouched(here, store, wakeful):
    assert wakeful("add", "job", "--every", "1h", "--", "true").code == 0
    victim = here / "victim"
    victim.write_text("mine")
    lock = Path(f"{store}.lock")
    lock.unlink(missing_ok=True)
    lock.symlink_to(victim)
    said = wakeful("run", "job")
    assert said.code == 1
    assert "wakeful.db.lock" in said.err
    assert victim.read_text() == "mine"


def test_logs_and_tokens_are_neither_read_nor_written_through_a_link(here, store, wakeful):
    secret, victim = here / "secret", here / "victim"
    secret.write_text("my own business")
    victim.write_text("mine")
    assert wakeful("add", "job", "--every", "1h", "--", "true").code == 0
    run_id = wakeful("run", "job", "--json").json["id"]
    log = Path(f"{store}.logs") / f"{run_id}.log"
    log.parent.mkdir(exist_ok=True)
    log.symlink_to(secret)
    assert "business" not in wakeful("logs", run_id).out
    result = keep_long_output(log.parent, "run_7", Result("success", output="x" * 100_000))
    assert result.log_file == str(log.parent / "run_7.json")
    Path(str(result.log_file)).unlink()
    Path(str(result.log_file)).symlink_to(victim)
    assert keep_long_output(log.parent, "run_7", Result("success", output="x" * 100_000)).log_file is None
    assert victim.read_text() == "mine"


def test_a_token_file_that_is_a_link_is_not_taken_for_the_first_token(here, store):
    async def main():
        async with Scheduler(f"sqlite:///{store}") as scheduler:
            real = await first_token(scheduler)
            assert real == await first_token(scheduler)
            real.rename(here / "moved")
            real.symlink_to(here / "moved")
            return await first_token(scheduler)

    assert asyncio.run(main()) is None
