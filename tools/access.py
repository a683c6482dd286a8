"""Writes docs/access.md: who may use which route, from what the routes of the server ask of their callers.

`tests/api/test_access.py` asks the server itself, as every caller on every route, and compares.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from wakeful.routing.addresses import OPEN_PATHS
from wakeful.routing.auth import anyone, at_least, editor, or_run, rights_of
from wakeful.surfaces.api import metrics
from wakeful.surfaces.api.app import all_routers
from wakeful.surfaces.api.runs import reporter

PAGE = Path(__file__).resolve().parents[1] / "docs" / "access.md"
YES, HIDDEN, SECRET = "yes", "hidden", "secret"
CALLERS = ("no token", "viewer", "operator", "admin", "agent, own", "agent, others", "run, own", "run, others")
INTRODUCTION = f"""# Access

Who may use which route. This page is made from the server's routes by `make access`, and a test compares it with the
answers of a server: every route, as every caller, on what belongs to the caller and on what belongs to others.
[SECURITY.md](../SECURITY.md) says who is trusted with what; [HTTP](http.md#tokens-and-roles) explains tokens and roles.

An `agent` token owns the jobs that it made, and those that an operator gave to its name. A run of an agent has a token
of its own while it works: the jobs of its agent are its own. A token and an agent of the same name have nothing to do
with each other.

| cell | means |
|---|---|
| {YES} | allowed; the content is still checked: commands and priorities are for admins, an operator's pause stays |
| {HIDDEN} | allowed, and the answer shows nothing of others |
| {SECRET} | a token neither helps nor is needed: the address or the signature is the secret |
| 401, 403, 404, 409 | refused with this status; 404 does not tell whether there is such a thing |

The callback token of a run is good for reporting the end of that run (`POST /api/runs/{{run_id}}/complete`) and for
nothing else.
"""
# What routes with owners answer otherwise than the rest of them.
OTHERWISE = {
    "POST /api/jobs": {"agent, others": "403"},  # for another owner
    "PUT /api/jobs/{ref}": {"agent, others": "403"},  # that a name is taken cannot be hidden
    "PUT /api/schedule/{slug}": {"agent, others": "403"},
    "POST /api/hold": {"agent, own": "403", "agent, others": "403"},
    "DELETE /api/hold": {"agent, own": "403", "agent, others": "403"},
    "POST /api/actions/{action_id}/undo": {"agent, others": "409"},  # nothing is left of it that they may undo
    "POST /api/agents/{name}/wake": {"run, others": YES},  # agents wake each other
    "POST /api/agents/{name}/events": {"run, others": YES},
    "GET /api/me": {"agent, others": YES, "run, others": YES},
}


class Rule(NamedTuple):
    """One route: what it is, and what each caller gets."""

    method: str
    path: str
    cells: dict[str, str]
    has_owner: bool  # whether it matters whose the thing is

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"


def rules() -> Iterator[Rule]:
    """Every route of the server, by address."""
    routes = [route for router in all_routers() for route in router.routes if isinstance(route, APIRoute)]
    for route in sorted(routes, key=lambda one: one.path):
        for method in sorted(route.methods or ()):
            asked = set(_calls(route.dependant))
            cells = _secret() if route.path.startswith(OPEN_PATHS) else _cells(asked, route.path)
            name = f"{method} {route.path}"
            has_owner = (rights_of in asked and _role(asked) is None) or any(_is(one, or_run) for one in asked)
            yield Rule(method, route.path, {**cells, **OTHERWISE.get(name, {})}, has_owner)


def _cells(asked: set[Any], path: str) -> dict[str, str]:
    """What each caller gets, by what the route asks for."""
    if metrics.reader in asked:  # as it is unless server.metrics.open is set
        asked = {*asked, anyone, metrics.VIEWER}
    if not asked & {anyone, reporter}:
        return dict.fromkeys(CALLERS, YES)
    role = _role(asked)
    with_runs, is_editor = any(_is(one, or_run) for one in asked), editor in asked
    ranks = {"viewer": 1, "operator": 2, "admin": 3}
    least = ranks["operator"] if is_editor or reporter in asked else ranks.get(role or "viewer", 1)
    cells = {"no token": "401"} | {name: YES if rank >= least else "403" for name, rank in ranks.items()}
    others = "404" if "{" in path or ":" in path else HIDDEN
    has_agents = role is None and reporter not in asked
    cells |= {"agent, own": YES, "agent, others": others} if has_agents else _both("agent", "403")
    has_runs = with_runs or (has_agents and not is_editor)
    return cells | ({"run, own": YES, "run, others": others} if has_runs else _both("run", "403"))


def _both(caller: str, cell: str) -> dict[str, str]:
    return {f"{caller}, own": cell, f"{caller}, others": cell}


def _secret() -> dict[str, str]:
    return dict.fromkeys(CALLERS, SECRET)


def _role(asked: set[Any]) -> str | None:
    """The least role a route asks for by name; None where every token may come in."""
    found = [inspect.getclosurevars(one).nonlocals for one in asked if _is(one, at_least) or _is(one, or_run)]
    inner = [inspect.getclosurevars(one["others"]).nonlocals if "others" in one else one for one in found]
    return next((str(one["role"]) for one in inner), None)


def _is(call: Any, maker: Callable[..., Any]) -> bool:
    """Whether a dependency was made by this function."""
    return getattr(call, "__qualname__", "").startswith(f"{maker.__qualname__}.")


def _calls(dependant: Dependant) -> Iterator[Any]:
    for inner in dependant.dependencies:
        yield inner.call
        yield from _calls(inner)


def render() -> str:
    """The page."""
    lines = [f"| route | {' | '.join(CALLERS)} |", f"|---|{'---|' * len(CALLERS)}"]
    lines += [f"| `{rule.name}` | {' | '.join(rule.cells[caller] for caller in CALLERS)} |" for rule in rules()]
    return "\n".join([INTRODUCTION, *lines, ""])


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    print(f"wrote {PAGE.name}")
