"""What `make promises` says comes from the last `make prove`, and from one on these very files."""

from __future__ import annotations

import subprocess

import pytest

from tools import promises
from tools.promises import Checkout, Part, Proof, passed_before

HERE = Checkout("c" * 40, "files")
PROVED = Part(HERE, 0, {"H1": [Proof("a.py::test_a", "passed")]})


@pytest.fixture
def record(tmp_path, monkeypatch):
    """Where parts are kept, for a list of two promises of which one is called kept."""
    listed = {"H1": promises.Promise("H1", kept=True, text="one"), "H2": promises.Promise("H2", kept=False, text="two")}
    monkeypatch.setattr(promises, "PARTS", tmp_path)
    monkeypatch.setattr(promises, "read_promises", lambda: listed)
    monkeypatch.setattr(Checkout, "read", lambda: HERE)
    return tmp_path


@pytest.fixture
def checkout(tmp_path):
    def git(*arguments):
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    for key, value in {"user.name": "Ada", "user.email": "ada@example.org", "commit.gpgsign": "false"}.items():
        git("config", key, value)
    (tmp_path / ".gitignore").write_text("/build/")
    (tmp_path / "a.py").write_text("a = 1")
    git("add", "-A")
    git("commit", "-qm", "one")
    return tmp_path, git


def test_the_parts_of_a_proof_are_read_together(record, capsys):
    PROVED.write(record / "one.json")
    Part(HERE, 0, {"H1": [Proof("b.py::test_b", "passed")]}).write(record / "two.json")
    assert promises.main([]) == 0
    said = capsys.readouterr().out
    assert "a.py::test_a" in said
    assert "b.py::test_b" in said
    assert said.splitlines()[-1] == "1 kept, 1 planned"


def test_a_promise_that_failed_in_any_part_is_not_kept(record, capsys):
    PROVED.write(record / "one.json")
    Part(HERE, 1, {"H1": [Proof("b.py::test_b", "failed")]}).write(record / "two.json")
    assert promises.main([]) == 1
    said = capsys.readouterr().out
    assert said.startswith("Tests failed")
    assert said.splitlines()[-1] == "0 kept, 1 planned"


def test_a_part_that_failed_fails_the_whole_although_every_promise_is_proved(record, capsys):
    PROVED.write(record / "one.json")
    Part(HERE, 1, {}).write(record / "two.json")
    assert promises.main([]) == 1
    assert capsys.readouterr().out.startswith("Tests failed")


@pytest.mark.parametrize(
    ("part", "why"),
    [
        (None, "Nothing has been proved yet"),
        (Checkout("d" * 40, "files"), "The last `make prove` ran on commit dddddddddddd, and this is cccccccccccc"),
        (Checkout("c" * 40, "others"), "Files have changed since the last `make prove`"),
    ],
)
def test_a_proof_of_other_files_is_refused_in_a_sentence(record, capsys, part, why):
    if part is not None:
        PROVED.write(record / "one.json")
        Part(part, 0, {}).write(record / "two.json")
    assert promises.main([]) == 2
    assert capsys.readouterr().out == f"{why}: run `make prove`, or `make promises RUN=1`.\n"


def test_a_checkout_is_known_by_its_commit_and_by_every_file_that_is_not_ignored(checkout):
    folder, git = checkout
    seen = [Checkout.read(folder)]
    (folder / "build").mkdir()
    (folder / "build" / "part.json").write_text("{}")
    assert Checkout.read(folder) == seen[0], "what is made is no source"
    for change in (
        lambda: (folder / "a.py").write_text("a = 2"),
        lambda: (folder / "new.py").write_text(""),
        (folder / "a.py").unlink,
        lambda: git("commit", "-qm", "two", "--allow-empty"),
    ):
        change()
        seen.append(Checkout.read(folder))
    assert len({*seen}) == 5


def test_a_folder_that_is_no_checkout_is_reported(tmp_path):
    with pytest.raises(RuntimeError, match="is not a Git checkout"):
        Checkout.read(tmp_path)


def test_what_passed_on_the_same_files_is_known_and_on_others_it_is_not(record):
    Part(HERE, 1, {}, ["a.py::test_a"]).write(record / "test.json")
    assert passed_before(record / "test.json", HERE) == {"a.py::test_a"}
    assert passed_before(record / "test.json", Checkout(HERE.commit, "others")) == set()
    assert passed_before(record / "none.json", HERE) == set()


def test_records_of_other_files_are_forgotten(record):
    PROVED.write(record / "one.json")
    Part(Checkout(HERE.commit, "others"), 0, {}).write(record / "two.json")
    assert promises.main(["--forget-stale"]) == 0
    assert [path.name for path in record.iterdir()] == ["one.json"]


def test_a_test_that_ran_in_two_parts_counts_once(record):
    assert promises.merge([PROVED, PROVED]) == {"H1": [Proof("a.py::test_a", "passed")]}
