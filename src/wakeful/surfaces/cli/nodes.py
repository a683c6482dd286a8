"""`node`: who shares a store, and taking one of them out of service without cutting anything off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from wakeful import Scheduler
from wakeful.clock import sleep
from wakeful.console.failures import WrongUse, say_aside, say_error
from wakeful.console.humanize import ago, count
from wakeful.console.opening import RUN_NODE, change, now_ms, read, rights_here, server_of
from wakeful.console.output import say
from wakeful.console.store_location import Db, StoreLocation, chosen
from wakeful.console.tables import Cell, Column, Json, print_json, print_table
from wakeful.kernel.cluster.nodes import Node
from wakeful.surfaces.cli.app import SERVER, app
from wakeful.triggers import parse_interval, to_ms

nodes = typer.Typer(help="List and drain the servers that share a store.")
app.add_typer(nodes, name="node", rich_help_panel=SERVER)

POLL_S = 0.5
STYLES = {"alive": "green", "draining": "yellow", "drained": "blue", "silent": "red", "dead": "red"}


@nodes.command("list")
def list_nodes(
    ctx: typer.Context,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Include earlier incarnations.")] = False,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """List the nodes that share this store. A SQLite store has one at a time: its server."""
    place = chosen(ctx, db)
    nothing: tuple[list[Node], dict[str, Any] | None, bool] = ([], None, False)
    found, server, is_shared = read(place, _look, nothing)
    shown = found if everything else latest(found) if is_shared else serving(found)
    if as_json:
        print_json([node.to_dict() for node in shown])
    elif shown:
        print_table(*node_rows(shown, now_ms()))
    elif server is not None:
        say(f"A server is starting on {place}: process {server.get('pid')} on {server.get('host')}")
    else:
        say(_nothing_runs(place, found))


async def _look(scheduler: Scheduler) -> tuple[list[Node], dict[str, Any] | None, bool]:
    """The nodes, the server, and whether several may share the store."""
    return await scheduler.list_nodes(), server_of(scheduler), await scheduler.read(lambda tx: not tx.exclusive)


def serving(found: Sequence[Node]) -> list[Node]:
    """The server of a store that has one at a time; a `wakeful run` is none."""
    return [node for node in found if node.lives and not node.name.startswith(RUN_NODE)]


def _nothing_runs(place: StoreLocation, found: Sequence[Node]) -> str:
    servers = [node for node in found if not node.name.startswith(RUN_NODE)]
    if not servers:
        return f"No server is running on {place}, and none has yet: wakeful serve"
    last = servers[-1]
    how = "stopped" if last.state == "stopped" else "ended without stopping"
    when = ago(to_ms(last.stopped_at if last.stopped_at is not None else last.seen_at), now_ms())
    last_seen = f"{how} {when}" if last.state == "stopped" else f"{how}, last seen {when}"
    return (
        f"No server is running on {place}: wakeful serve. The last one, process {last.pid} on {last.host}, {last_seen}."
    )


def latest(found: Sequence[Node]) -> list[Node]:
    """Of each name the last, and all that are still here; of those that a `wakeful run` was, only the latter."""
    last = {node.name: node.id for node in found if not node.name.startswith(RUN_NODE)}
    here = {node.id for node in found if node.stopped_at is None and node.state != "dead"}
    return [node for node in found if node.id in here or node.id == last.get(node.name)]


def node_rows(found: Sequence[Node], now: int) -> tuple[list[Column], list[list[str | Cell]]]:
    """Columns and rows of a listing of nodes."""
    columns = [
        Column("NAME", 8),
        Column("STATE", 8),
        Column("RUNS", 4),
        Column("SEEN", 8, spare=1),
        Column("LOOP", 7, spare=2),
        Column("HOST", 8, spare=3),
        Column("PID", 5, spare=5),
        Column("LABELS", 6, spare=4),
        Column("KINDS", 6, spare=7),
        Column("SINCE", 8, spare=6),
        Column("VERSION", 5, spare=8),
    ]
    return columns, [_row(node, now) for node in found]


def _row(node: Node, now: int) -> list[str | Cell]:
    state = f"dead, taken over by {node.taken_by}" if node.taken_by is not None else node.state
    loop = "" if not node.lives or node.loop_at is None else "stalled" if node.stalled else "turning"
    return [
        node.name,
        Cell(state, STYLES.get(node.state, "")),
        str(node.running) if node.lives or not node.running else f"{node.running} cut off",
        ago(to_ms(node.stopped_at if node.stopped_at is not None and node.taken_by is None else node.seen_at), now),
        Cell(loop, "red" if node.stalled else ""),
        node.host or "",
        str(node.pid or ""),
        ", ".join(node.labels),
        ", ".join(node.kinds),
        ago(to_ms(node.started_at), now),
        node.version or "",
    ]


@nodes.command("drain")
def drain(
    ctx: typer.Context,
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A node's name.", show_default=False)],
    undo: Annotated[bool, typer.Option("--undo", help="Let it start runs again.")] = False,
    wait: Annotated[
        str | None,
        typer.Option("--wait", metavar="DURATION", help="Wait until its runs have ended; exit with 1 after this time."),
    ] = None,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Drain a node: it finishes its runs and starts no new ones. Other nodes start what becomes due."""
    patience = parse_interval(wait).total_seconds() if wait is not None else 0.0
    if undo and wait is not None:
        raise WrongUse("--undo has nothing to wait for: leave out --wait.")

    async def work(scheduler: Scheduler) -> Node:
        node = await scheduler.server_side.drain_node(name, rights_here(), drain=not undo)
        return node if undo or wait is None else await _until_drained(scheduler, node, patience)

    node = change(chosen(ctx, db), work)
    if as_json:
        print_json(node.to_dict())
    elif undo:
        say(f"{name} starts runs again")
    else:
        say(_summary(node))
    if wait is not None and node.running:
        say_error(f"Timed out: {name} still has {count(node.running, 'run')} and continues to drain.")
        raise typer.Exit(1)


def _summary(node: Node) -> str:
    if node.running:
        return f"{node.name} is draining; {count(node.running, 'run')} still active"
    gone = "" if node.lives else f" ({node.state})"
    return f"{node.name} is drained{gone} and can be stopped"


async def _until_drained(scheduler: Scheduler, node: Node, patience: float) -> Node:
    """The node when it runs nothing more, or when time is up; prints the number of runs left as it changes."""
    waited, shown = 0.0, -1
    while node.running and waited < patience:
        if node.running != shown:
            say_aside(f"{count(node.running, 'run')} still active")
            shown = node.running
        await sleep(POLL_S)
        waited += POLL_S
        found = [each for each in await scheduler.list_nodes() if each.id == node.id]
        node = found[0] if found else node._replace(running=0)
    return node
