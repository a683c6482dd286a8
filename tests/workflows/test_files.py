"""Workflows from files: versions by content, private modules, and a broken file that stops only its own workflow."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import terminal
from tests.service.real_time import Watch
from wakeful import Scheduler, Workflow
from wakeful.domains.workflows.files import WorkflowFiles, WorkflowList
from wakeful.domains.workflows.loading import CannotLoad, FileRef, load_file, read_ref
from wakeful.domains.workflows.tables import WorkflowVerbs
from wakeful.domains.workflows.wiring import mistakes, warnings
from wakeful.errors import InvalidJob, InvalidSetting, StoreFull

__all__ = ["terminal"]

GOOD = """
from wakeful import Interval, Prepared, Workflow
import helpers
workflow = Workflow("{name}")

@workflow.producer(Interval("1h"), publishes=["mail"])
async def poll(ctx, state):
    from helpers import WORD
    return {{"word": WORD, "config": ctx.config}}
"""


def write(folder, name="invoices", word="one"):
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text(GOOD.format(name=name))
    (folder / "helpers.py").write_text(f"WORD = {word!r}\n")
    return read_ref(f"{name}.py:workflow", folder)


def test_a_version_is_the_hash_of_the_file_and_what_it_imports_from_its_folder(tmp_path):
    ref = write(tmp_path)
    first = load_file(ref)
    assert load_file(ref).version == first.version
    (tmp_path / "unrelated.py").write_text("x = 1\n")
    assert load_file(ref).version == first.version
    write(tmp_path, word="two")
    assert load_file(ref).version != first.version
    assert load_file(ref._replace(config={"a": 1})).version not in (first.version, load_file(ref).version)


@pytest.mark.parametrize("line", ["from . import more", "from .more import X", "import more as other"])
def test_however_a_module_is_imported_it_is_part_of_the_version(tmp_path, line):
    ref = write(tmp_path)
    (tmp_path / "helpers.py").write_text(f"{line}\nWORD = 'one'\n")
    (tmp_path / "more.py").write_text("X = 1\n")
    first = load_file(ref)
    (tmp_path / "more.py").write_text("X = 2\n")
    assert load_file(ref).version != first.version


def test_a_file_that_exits_is_one_that_cannot_be_loaded(tmp_path):
    ref = write(tmp_path)
    (tmp_path / "helpers.py").write_text("raise SystemExit(3)\n")
    found = load_file(ref)
    assert isinstance(found, CannotLoad)
    assert found.message == "SystemExit: 3"


def test_two_folders_with_a_module_of_one_name_do_not_see_each_other(tmp_path):
    one = load_file(write(tmp_path / "a", word="one"))
    two = load_file(write(tmp_path / "b", word="two"))

    class Ctx:
        config = None

    words = [asyncio.run(flow.handlers["poll"].run(Ctx(), {}))["word"] for flow in (one, two)]
    assert words == ["one", "two"]
    assert "helpers" not in sys.modules


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("import nonsense_xyz", "No module named 'nonsense_xyz'"),
        ("def broken(:", "SyntaxError"),
        ("x = 1", "has no workflow called workflow"),
        ("from wakeful import Workflow\nmail = Workflow('a')", "has no workflow called workflow: write a.py:mail"),
        ("from wakeful import Workflow\nworkflow = Workflow('a')", "has no handlers"),
        ("raise SystemError('no')", "SystemError: no"),
    ],
)
def test_a_file_that_cannot_be_loaded_says_why(tmp_path, source, says):
    (tmp_path / "a.py").write_text(source)
    found = load_file(read_ref("a.py:workflow", tmp_path))
    assert isinstance(found, CannotLoad)
    assert says in found.message
    assert "loading.py" not in found.trace


def test_a_reference_names_a_file_and_a_name_in_it(tmp_path):
    assert read_ref("a.py:flow", tmp_path).attribute == "flow"
    assert read_ref("a.py", tmp_path) == FileRef(tmp_path / "a.py", "workflow")
    with pytest.raises(InvalidSetting, match=r"FILE\.py:NAME"):
        read_ref("invoices", tmp_path)


def test_wiring_mistakes_are_found_before_anything_runs():
    from wakeful import Workflow

    workflow = Workflow("wired")
    consumer = workflow.consumer("c", subscribes=["orphaned"], publishes=[])

    @consumer.prepare
    async def prepare(ctx): ...

    @consumer.reconcile
    async def reconcile(ctx, prepared): ...

    @consumer.next
    def next_(ctx, prepared): ...

    found = " ".join(mistakes(workflow))
    assert "c.prepare has the wrong arguments: it is called with (ctx, state)." in found
    assert "c has reconcile and no mutate" in found
    wanted = "(ctx, prepared, result), or (ctx, prepared, result, state)"
    assert f"c.next has the wrong arguments: it is called with {wanted}." in found
    assert warnings(workflow) == ["No handler publishes the topic orphaned, which c subscribes to."]


async def rows(scheduler):
    return {row.name: row for row in await scheduler.read(lambda tx: tx.of(WorkflowVerbs).all())}


def test_a_changed_file_that_a_full_disk_kept_from_being_deployed_is_deployed_when_there_is_room(tmp_path):
    ref = write(tmp_path, "good")

    async def main():
        scheduler = Scheduler(f"sqlite:///{tmp_path}/w.db")
        files = WorkflowFiles(scheduler, WorkflowList([ref]))
        files.load_all()
        async with scheduler:
            watch = Watch(scheduler)
            await scheduler.start()
            await watch.finished()  # the first poll, which needs the store, too
            before, transact = (await rows(scheduler))["good"].version, scheduler.transact

            async def full(work, **options):
                raise StoreFull("the disk is full")

            write(tmp_path, "good", word="two")
            scheduler.transact = full
            with pytest.raises(StoreFull):
                await files.run_once()
            scheduler.transact = transact
            found = (await rows(scheduler))["good"]
            assert (found.version, found.issue) == (before, None), "the file is not broken"
            await files.run_once()
            found = (await rows(scheduler))["good"]
            assert (found.version, found.issue) == (load_file(ref).version, None)
            assert found.version != before

    asyncio.run(main())


def test_a_broken_file_stops_its_workflow_alone_until_it_is_corrected(tmp_path):
    good, other = write(tmp_path, "good"), write(tmp_path, "other")
    (tmp_path / "bad.py").write_text("import nonsense_xyz")
    refs = [good, other, read_ref("bad.py:workflow", tmp_path)]

    async def main():
        scheduler = Scheduler(f"sqlite:///{tmp_path}/w.db")
        files = WorkflowFiles(scheduler, WorkflowList(refs))
        files.load_all()
        async with scheduler:
            await scheduler.start()
            found = await rows(scheduler)
            assert {name: row.issue for name, row in found.items()} == {"bad": "load", "good": None, "other": None}
            (tmp_path / "good.py").write_text("def broken(:")
            (tmp_path / "bad.py").write_text(GOOD.format(name="repaired"))
            await files.run_once()
            found = await rows(scheduler)
            assert {name: row.issue for name, row in found.items()} == {
                "good": "load", "other": None, "repaired": None,
            }  # fmt: skip
            assert [alert.message.split()[0] for alert in await scheduler.list_alerts()] == ["good"]
            write(tmp_path, "good", word="three")
            await files.run_once()
            found = await rows(scheduler)
            assert found["good"].issue is None
            versions = await scheduler.read(lambda tx: tx.of(WorkflowVerbs).versions("good"))
            assert [number for number, _, _ in versions] == [2, 1]
            assert await scheduler.list_alerts() == []
            await scheduler.stop()

    asyncio.run(main())


MISTAKEN = """
from wakeful import Interval, Workflow
workflow = Workflow("flow")

@workflow.producer(Interval("5m"), publishes=["mail"])
async def poll(ctx):
    return {}

reader = workflow.consumer("reader", subscribes=["ghosts"])

@reader.prepare
async def prepare(ctx, state):
    return None

@reader.reconcile
async def reconcile(ctx, prepared):
    return None
"""


@pytest.mark.parametrize("as_json", [False, True])
def test_check_lists_every_mistake_by_itself_also_a_topic_that_no_handler_publishes(terminal, as_json):
    (terminal.folder / "flow.py").write_text(MISTAKEN)
    found = terminal.ask("workflow", "check", "flow.py", *(["--json"] if as_json else []))
    problems = [
        "poll has the wrong arguments: it is called with (ctx, state).",
        "reader has reconcile and no mutate: add mutate, or drop reconcile.",
        "No handler publishes the topic ghosts, which reader subscribes to.",
    ]
    assert found.code == 1
    if as_json:
        assert found.json == {"name": "flow", "handlers": ["poll", "reader"], "problems": problems}
    else:
        assert found.out.splitlines() == problems


def test_check_of_a_file_that_does_not_exist_says_so(terminal):
    found = terminal.ask("workflow", "check", "nothing.py")
    assert (found.code, found.out) == (1, f"There is no file {terminal.folder / 'nothing.py'}\n")


def test_what_is_declared_wrongly_is_refused_where_it_is_written():
    workflow = Workflow("flow")
    reader = workflow.consumer("reader", subscribes=["mail"])

    @reader.prepare
    async def prepare(ctx, state):
        return None

    wrong = {
        "A handler cannot be called 'wake': jobs named NAME.wake are those of agents": lambda: Workflow("x").consumer(
            "wake", subscribes=["mail"]
        ),
        "Topics are a list of names, not 5": lambda: workflow.consumer("a", subscribes=5),
        "Topics are a list of names, not {'mail'}": lambda: workflow.consumer("b", subscribes={"mail"}),
        "reader has two functions for prepare": lambda: reader.prepare(prepare),
    }
    for says, act in wrong.items():
        with pytest.raises(InvalidJob, match=says):
            act()
    assert list(workflow.handlers) == ["reader"]


def test_two_files_with_one_name_stop_the_second_alone_whatever_the_files_are_called(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    first, second = write(tmp_path / "one", "shop"), write(tmp_path / "two", "shop", word="two")

    async def main():
        scheduler = Scheduler(f"sqlite:///{tmp_path}/w.db")
        files = WorkflowFiles(scheduler, WorkflowList([first, second]))
        files.load_all()
        async with scheduler:
            await scheduler.start()
            found = await rows(scheduler)
            assert {name: row.issue for name, row in found.items()} == {"shop": None, "shop-2": "load"}
            assert found["shop"].source == first.source
            assert found["shop-2"].issue_message.startswith("the workflow shop is also in shop.py:workflow: rename one")
            second.path.write_text(second.path.read_text().replace('"shop"', '"other"'))
            await files.run_once()
            assert {name: row.issue for name, row in (await rows(scheduler)).items()} == {"shop": None, "other": None}

    asyncio.run(main())


@pytest.mark.parametrize(
    ("names", "changes", "left"),
    [
        ("aa", [("a", "c")], {"a": "two", "c": "one"}),  # the first is renamed, as the second's issue advises
        ("ab", [("b", "a"), ("a", "b")], {"b": "one", "a": "two"}),
        ("ab", [("b", "c"), ("a", "b")], {"b": "one", "c": "two"}),
    ],
)
def test_a_name_that_another_file_gives_up_is_free_at_once(tmp_path, names, changes, left):
    refs = [write(tmp_path / folder, name) for folder, name in zip(("one", "two"), names, strict=True)]

    async def main():
        scheduler = Scheduler(f"sqlite:///{tmp_path}/w.db")
        files = WorkflowFiles(scheduler, WorkflowList(refs))
        files.load_all()
        async with scheduler:
            await scheduler.start()
            sources = list(reversed(refs)) if len(changes) > 1 else refs
            for ref, (old, new) in zip(sources, changes, strict=False):
                ref.path.write_text(ref.path.read_text().replace(f'"{old}"', f'"{new}"'))
            await files.run_once()
            found = await rows(scheduler)
            assert {name: found[name].issue for name in left} == dict.fromkeys(left)
            assert {name: Path(found[name].source).parent.name for name in left} == left

    asyncio.run(main())


def test_any_number_of_broken_files_with_one_long_name_have_each_a_place_of_its_own(tmp_path):
    refs = [write(tmp_path / folder, "n" * 64) for folder in ("one", "two", "three", "four")]
    for ref in refs:
        ref.path.write_text("1 / 0\n")

    async def main():
        scheduler = Scheduler(f"sqlite:///{tmp_path}/w.db")
        files = WorkflowFiles(scheduler, WorkflowList(refs))
        files.load_all()
        async with scheduler:
            await scheduler.start()
            found = await rows(scheduler)
            assert {row.source for row in found.values()} == {ref.source for ref in refs}
            assert all(len(name) <= 64 for name in found)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("{fil: a.py}", "There is no key 'fil' in workflows.0. Did you mean 'file'?"),
        ("{file: a.py, bogus: 1}", "There is no key 'bogus' in workflows.0. Known here: auto_fix, auto_fix_apply,"),
        ("{file: a.py, auto_fix: x}", "workflows.0.auto_fix must be a list, not 'x'."),
        ("{config: {}}", "workflows.0.file is missing."),
        ("5", "workflows.0 must be a text, not 5."),
        ("a.py, a.py", "workflows lists a.py:workflow twice"),
    ],
)
def test_a_wrong_entry_of_the_list_is_one_mistake_that_says_what_is_right(terminal, entry, says):
    (terminal.folder / "wakeful.yaml").write_text(f"workflows: [{entry}]\n")
    found = terminal.ask("check")
    assert found.code == 1
    assert says in found.out
    if "fil:" not in entry:
        assert found.out.count("wakeful.yaml:1:") == 1, found.out
