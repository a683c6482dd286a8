"""Regular expressions from outside are searched by an engine that does not backtrack: `wakeful/patterns.py`.

Every pattern that our code gives to `re` is written in the code: a literal, or a name of the same module that stands
for one. Any other comes from somewhere, and is named here with the reason why that is not outside.
"""

from __future__ import annotations

import ast

from tests.house.source import Module, modules, read_module

SEARCHES = {"compile", "search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn", "template"}
OURS = {
    ("wakeful.domains.agents.registry", "EVENT_LABEL"): "a constant of another module",
    ("wakeful.store.address", "_KEYWORD"): "made of the names that PostgreSQL has for parts of an address",
    ("wakeful.domains.agents.runners.judging", "sign"): "of a preset; one of a user is a Pattern",
    ("wakeful.domains.agents.runners.output", "form.apology"): "of a preset",
    ("wakeful.domains.agents.runners.plain_text", "form.said"): "of a preset",
    ("wakeful.domains.agents.runners.plain_text", "form.trouble"): "of a preset",
    ("wakeful.domains.agents.runners.plain_text", "form.counted"): "of a preset",
    ("wakeful.domains.command.capture", "b'|'.join(map(re.escape, self._secrets))"): "escaped texts",
    ("wakeful.store.postgres_errors", "self.words"): "of a table in that module",
}


def constants(module: Module) -> set[str]:
    """Names of a module that stand for texts that it holds, also in tables that it goes through."""
    known: set[str] = set()
    for node in module.tree.body:
        value = getattr(node, "value", None)
        if isinstance(node, ast.Assign | ast.AnnAssign) and value is not None and is_written(value, known):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            known |= {target.id for target in targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.For) and is_written(node.iter, known):
            known |= {name.id for name in ast.walk(node.target) if isinstance(name, ast.Name)}
    return known


def is_written(node: ast.expr, known: set[str]) -> bool:
    """Whether an expression is made of nothing but texts in the code."""
    if isinstance(node, ast.Name):
        return node.id in known
    if isinstance(node, ast.Attribute):
        return node.attr == "pattern" and isinstance(node.value, ast.Name) and node.value.id in known
    if isinstance(node, ast.Call):
        return called(node) == "compile" and is_written(node.args[0], known)
    if isinstance(node, ast.BinOp):
        return is_written(node.left, known) and is_written(node.right, known)
    if isinstance(node, ast.Tuple | ast.List):
        return all(is_written(item, known) for item in node.elts)
    if isinstance(node, ast.JoinedStr):
        parts = [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
        return all(is_written(part, known) for part in parts)
    return isinstance(node, ast.Constant)


def called(node: ast.AST) -> str | None:
    """The function of `re` that a call is of."""
    function = node.func if isinstance(node, ast.Call) else None
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "re":
        return function.attr if function.attr in SEARCHES else None
    return None


def from_elsewhere(module: Module) -> list[tuple[str, int]]:
    calls = [node for node in ast.walk(module.tree) if isinstance(node, ast.Call) and called(node)]
    known = constants(module) if calls else set()
    return [(ast.unparse(call.args[0]), call.lineno) for call in calls if not is_written(call.args[0], known)]


def test_every_pattern_that_re_is_given_is_written_in_the_code():
    found = {(module.name, text): module.at(line) for module in modules() for text, line in from_elsewhere(module)}
    assert {place: text for (module, text), place in found.items() if (module, text) not in OURS} == {}
    assert [one for one in OURS if one not in found] == []


def test_re_is_used_by_its_name_so_that_every_use_is_seen():
    hidden = []
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom) and node.module in ("re", "sre_compile", "sre_parse"):
                names = {alias.name for alias in node.names}
                allowed = names == {"_parser"} and module.name == "wakeful.patterns"
                hidden += [] if allowed else [module.at(node.lineno)]
            if isinstance(node, ast.Import):
                hidden += [module.at(node.lineno) for alias in node.names if alias.name == "re" and alias.asname]
    assert hidden == []


def test_a_pattern_from_a_variable_is_found(tmp_path):
    path = tmp_path / "sample.py"
    path.write_text("import re\nNAME = 'a'\nre.search(NAME, x)\n\n\ndef f(given):\n    return re.search(given, x)\n")
    assert from_elsewhere(read_module(path, tmp_path)) == [("given", 7)]
