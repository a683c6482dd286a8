"""Every file that is read is either known to be ours, or looked at by `wakeful/trust.py` first.

What a file says may decide what runs here: configurations, workflows, functions, prompts, secrets. Each place that
reads files is named here, with who checks them, or why nothing has to be checked. A new place is found by these tests.
"""

from __future__ import annotations

import ast

from tests.house.source import Module, modules, read_module

READS = {"read_text", "read_bytes", "glob", "rglob", "iterdir", "scandir", "listdir", "spec_from_file_location"}
TRUSTED = {
    ("wakeful.domains.agents.handler", "_text_of"): "asks for itself",
    ("wakeful.callables", "_from_file"): "asks for itself",
    ("wakeful.references", "_value_in"): "for looked_up and variables_of, which ask",
    ("wakeful.config.reading", "_lines_of"): "for _env_file, which asks",
    ("wakeful.config.jobs_file", "matching"): "for what `include` names; the caller asks about each",
    ("wakeful.domains.workflows.loading", "source_files"): "for load_file, which asks about each before any is run",
    ("wakeful.domains.workflows.loading", "_beside"): "for load_file, too",
}
OTHERS = {
    ("wakeful.config.reading", "_text_of"): "a configuration that is named, or found and asked about",
    ("wakeful.store.upgrade_backups", "back_up"): "copies of the store itself, beside it",
    ("wakeful.store.upgrade_backups", "copies"): "copies of the store itself, beside it",
    ("wakeful.surfaces.web.assets", "content_of"): "files of this package",
    ("wakeful.surfaces.web.assets", "assets"): "files of this package",
    ("wakeful.demo.history", "live_a_week"): "a private folder that it has made itself",
    ("wakeful.demo.place", "read"): "a private folder that the demo has made",
    ("wakeful.demo.place", "received"): "a private folder that the demo has made",
    (
        "wakeful.domains.agents.runners.versions",
        "_packaged",
    ): "says which version of a program runs; nothing is decided by it",
    ("wakeful.domains.agents.runners.mcp_access", "_opened"): "a folder that is locked and not read",
    ("wakeful.domains.agents.runners.mcp_access", "_remove_left_behind"): "folders of our own, to remove them",
    ("wakeful.domains.agents.sources.folders", "read"): "text from outside by definition; links are not followed",
    ("wakeful.domains.agents.sources.folders", "entries"): "names in a folder that was opened without following links",
    ("wakeful.domains.agents.sources.folders", "_opened"): "a folder, without following links",
    ("wakeful.domains.command.leftovers", "_processes"): "/proc",
    ("wakeful.domains.command.leftovers", "_process"): "/proc",
    ("wakeful.domains.command.leftovers", "_carries"): "/proc",
    ("wakeful.domains.command.leftovers", "_boot"): "/proc",
    ("wakeful.domains.delivery.local", "_append"): "is written to; what is read back is one byte",
    ("wakeful.private_files", "open_private"): "is written; links are refused",
    ("wakeful.private_files", "open_unlinked"): "logs beside the store; links are refused",
    ("wakeful.moving.sources", "read_data"): "asks for itself about the file that it has opened",
    ("wakeful.moving.sources", "_below"): "names alone; links are passed over, and read_data asks about each file",
    ("wakeful.moving.sqlite", "is_sqlite"): "is compared, and not used",
    ("wakeful.moving.writing", "write"): "the configuration that is named, which gets more",
    ("wakeful.moving.exporting", "_refuse_full"): "whether it is empty",
    ("wakeful.moving.exporting", "_write"): "is made anew",
    ("wakeful.moving.exporting", "_write_lines"): "is made anew",
    ("wakeful.kernel.engine.long_output", "remove_older_files"): "names of files of output, to delete them",
    ("wakeful.surfaces.cli", "main"): "/dev/null",
    ("wakeful.surfaces.cli.backup_files", "prune"): "names of backups in a directory that a person named",
    ("wakeful.surfaces.cli.service", "status"): "shown to a person",
    ("wakeful.surfaces.cli.service_units", "look"): "shown to a person",
    ("wakeful.surfaces.cli.starting", "_write"): "is made anew",
    ("wakeful.surfaces.cli.skill", "skill"): "a file of this package",
    ("wakeful.surfaces.cli.skill", "_write"): "is written; what is read back says whether it is ours to replace",
    ("wakeful.store.wake_socket", "_open_socket"): "a pipe beside the store",
    ("wakeful.store.wake_socket", "_short"): "a folder, which is not read",
    ("wakeful.store.copying", "carry"): "logs beside the store",
    ("wakeful.store.process_identity", "forget"): "/dev/null",
    ("wakeful.store.sqlite_file", "_make_private"): "is made, and not read",
    ("wakeful.store.schema_version", "_steps_of"): "of this package, or of an installed domain",
    ("wakeful.store.schema_version", "_numbered"): "the same",
    ("wakeful.store.schema_version", "_last_number"): "the names of these files",
    ("wakeful.triggers.zones", "_from_timezone_file"): "/etc/timezone",
    ("wakeful.domains.workflows.fixes.fixer", "_refuse_changed"): "is compared, and not used",
}


def is_read(call: ast.Call) -> bool:
    """Whether a call reads a file, or finds some."""
    function = call.func
    if isinstance(function, ast.Name):
        return function.id == "open"
    if not isinstance(function, ast.Attribute):
        return False
    mode = call.args[0] if call.args else None
    opens_path = (
        isinstance(mode, ast.Constant) and isinstance(mode.value, str) and mode.value.startswith(("r", "w", "a"))
    )
    is_os = isinstance(function.value, ast.Name) and function.value.id == "os"
    return function.attr in READS or (function.attr == "open" and (is_os or opens_path))


def reads(module: Module) -> dict[tuple[str, str], str]:
    """The functions of a module that read files, each with a place where it does."""
    found = {}
    for function in ast.walk(module.tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and is_read(node):
                    found[module.name, function.name] = module.at(node.lineno)
    return found


def test_every_place_that_reads_files_is_one_that_asks_whether_they_are_trusted_or_says_why_not():
    found = {one: place for module in modules() for one, place in reads(module).items()}
    assert {one: place for one, place in found.items() if one not in TRUSTED | OTHERS} == {}
    assert [one for one in TRUSTED | OTHERS if one not in found] == []


def test_what_is_said_to_ask_is_in_a_module_that_asks():
    names = {
        module.name: {node.id for node in ast.walk(module.tree) if isinstance(node, ast.Name)} for module in modules()
    }
    assert [name for name, _ in TRUSTED if not names[name] & {"distrust", "distrust_below"}] == []


def test_a_new_place_that_reads_a_file_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.house.source.ROOT", tmp_path)
    path = tmp_path / "sample.py"
    for line in ("open(p)", "p.read_text()", "p.open('rb')", "os.open(p, 0)", "p.glob('*')", "os.scandir(p)"):
        path.write_text(f"import os\n\n\ndef f(p):\n    return {line}\n")
        assert list(reads(read_module(path, tmp_path))) == [("sample", "f")], line
    path.write_text("def f(tx):\n    return tx.runs.open(1)\n")
    assert reads(read_module(path, tmp_path)) == {}
