"""`wakeful agent`: agents, what they do, and waking them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from wakeful.clock import sleep
from wakeful.console.failures import WrongUse, say_note
from wakeful.console.following import again_at, held_up, waits_long
from wakeful.console.humanize import ago, ahead, count, stamp
from wakeful.console.opening import change, now_ms, read, rights_here, say_undo, server_of, shown_zone, usable_zone
from wakeful.console.output import say, say_text
from wakeful.console.store_location import TOKEN, Db, StoreLocation, chosen
from wakeful.console.tables import Cell, Column, Json, print_facts, print_json, print_table
from wakeful.domains.agents.belongings.moving import move_all, orphaned
from wakeful.domains.agents.limits.commands import limits
from wakeful.domains.agents.pausing import Acted, pause_agent, resume_agent
from wakeful.domains.agents.questions.commands import ask
from wakeful.domains.agents.waking import REASONS
from wakeful.errors import ScheduleTriggerError
from wakeful.kernel.views.cut_off import CUT_OFF
from wakeful.scheduler import Scheduler
from wakeful.triggers.moments import iso, read_moment, spoken

app = typer.Typer(help="Show agents, wake them, and leave them events.")
app.add_typer(limits, name="limits")
app.command("ask")(ask)

STYLES = {"running": "green", "paused": "yellow", "disabled": "red"}
ASK_S = 0.1

Name = Annotated[str, typer.Argument(metavar="NAME", help="An agent's name.", show_default=False)]


@app.command("list")
def list_(ctx: typer.Context, *, as_json: Json = False, db: Db = None) -> None:
    """List agents with their state."""
    place = chosen(ctx, db)
    nothing: list[dict[str, Any]] = []
    found = read(place, lambda scheduler: scheduler.agents.list(), nothing)
    if as_json:
        print_json(found)
        return
    if found:
        print_table(*_rows(found))
    else:
        say(f"No agents in {place}: add some to agents in wakeful.yaml, and run wakeful apply or wakeful serve.")
    notes: list[str] = []
    if not place.server:  # a run sees its own agent alone
        notes = read(place, lambda scheduler: scheduler.read(orphaned), notes)
    for note in notes:
        say_note(note)


def _rows(found: list[dict[str, Any]]) -> tuple[list[Column], list[list[str | Cell]]]:
    columns = [
        Column("AGENT", 8),
        Column("STATUS", 12),
        Column("RUNNING", 7),
        Column("SCHEDULES", 9, spare=3),
        Column("NEXT", 6),
        Column("LAST", 7),
        Column("EVENTS", 6, spare=3),
        Column("ERROR", 10, spare=1),
    ]
    now = now_ms()
    rows: list[list[str | Cell]] = [
        [
            one["name"],
            _state(one),
            f"{one['running']}/{one['max_concurrent']}",
            str(one["schedules"]),
            "-" if one["next_run_at"] is None else ahead(_ms(one["next_run_at"]), now),
            one["last_outcome"] or "-",
            str(one["events_waiting"]),
            " ".join((one["last_error"] or "").split()),
        ]
        for one in found
    ]
    return columns, rows


def _state(one: dict[str, Any]) -> Cell:
    """What it does, or why it does nothing."""
    if one["cut_off"]:
        return Cell(CUT_OFF, "red")
    if one["status"] == "running" and one["paused"]:
        return Cell("running, paused", "yellow")
    if one["status"] == "idle" and one["over_budget"]:
        return Cell("over budget", "yellow")
    if one["status"] == "idle" and one["rate_limited"]:
        return Cell("rate limited", "yellow")
    return Cell(one["status"], STYLES.get(one["status"], ""))


def _state_words(one: dict[str, Any]) -> Cell:
    """The same, with the reason."""
    state = _state(one)
    if one["cut_off"]:
        return Cell(f"{state.text}: its server has ended", state.style)
    if state.text == "running, paused":
        return Cell(f"{state.text}: it starts nothing more", state.style)
    if state.text == "rate limited":
        limit = one["rate_limited"]
        return Cell(f"rate limited until {spoken(_ms(limit['until']))}: {limit['why']}", state.style)
    return Cell(one["over_budget"], state.style) if state.text == "over budget" else state


def _coming(one: dict[str, Any], now: int) -> str:
    """What starts a schedule next."""
    if one["type"] == "webhook":
        return f"starts with POST {one['hook']}, {count(one['requests_waiting'], 'request')} waiting"
    if one["type"] == "chat":
        return "starts with a chat message"
    return "no next time" if one["next_run_at"] is None else f"next {ahead(_ms(one['next_run_at']), now)}"


def _ms(text: str) -> int:
    return read_moment(text, "at")


@app.command("show")
def show(ctx: typer.Context, *, name: Name, as_json: Json = False, db: Db = None) -> None:
    """Show an agent with its schedules, sessions and events."""
    place = chosen(ctx, db)
    found = change(place, lambda scheduler: scheduler.agents.get(name))
    if as_json:
        print_json(found)
        return
    now = now_ms()
    facts: list[tuple[str, str | Cell]] = [
        ("agent", found["name"] if not found["description"] else f"{found['name']}: {found['description']}"),
        ("status", _state_words(found)),
        ("running", f"{found['running']} of {found['max_concurrent']}"),
        ("today", _spent(found)),
        *([] if found["over_budget"] else _budget_reached(place, found["name"])),  # the status says it already
    ]
    facts += [("env", f"{', '.join(found['env'])}, where the server has them")] if found["env"] else []
    beats = [found["heartbeat"]] if found["heartbeat"] else []
    for one in [*beats, *found["schedules"]]:
        coming = _coming(one, now)
        last = "" if one["last_run_at"] is None else f", last {ago(_ms(one['last_run_at']), now)}"
        error = f": {one['last_error']}" if one["last_error"] else ""
        status = CUT_OFF if one["cut_off"] else one["status"]
        facts.append((one["name"], f"{status}, {coming}{last}{error}"))
    for one in found["self_schedule"]["asked"]:
        mode = found["self_schedule"]["mode"]
        state = "allowed" if mode == "allow" else "approved"
        if one["waits_for"] is not None:
            state = f"waits for approval: wakeful approve {one['waits_for']}"
        facts.append(("asked for", f"{one['job']} {ago(_ms(one['asked_at']), now)}, {state}"))
    facts += [("session", f"{one['name']} is {one['session']}") for one in found["sessions"]]
    facts += [("event", f"[{one['source'] or 'event'}] {one['text']}") for one in found["events"]]
    facts += [("refused", f"{reason}: {times}") for reason, times in found["skips"].items()]
    print_facts(facts)


def _budget_reached(place: StoreLocation, agent: str) -> list[tuple[str, str | Cell]]:
    """When the agent's budget of a day is expected to be used up, if it is within a month."""
    if place.server:  # which does not say it
        return []
    from wakeful.foresight.forecasting import forecast

    async def work(scheduler: Scheduler) -> int | None:
        found = await scheduler.read(lambda tx: forecast(tx, usable_zone(place)))
        return next((one.reached_at for one in found.budgets if one.agent == agent), None)

    at = change(place, work)
    return [] if at is None else [("budget", f"reached on {stamp(at, shown_zone(place))} (estimate)")]


def _spent(found: dict[str, Any]) -> str:
    from wakeful.domains.agents.budgets.rules import Spent, caps_of, in_millionths, spent_words

    used, held = found["spent_today"], found["reserved"]
    cost, reserved = (in_millionths(amount) or 0 for amount in (used["cost"], held["cost"]))
    spent = Spent(used["runs"], cost, used["tokens"], held["runs"], reserved)
    return spent_words(caps_of(found["budget"]), spent)


@app.command("wake")
def wake(
    ctx: typer.Context,
    *,
    name: Name,
    reason: Annotated[str, typer.Option("--reason", metavar="REASON", help=f"Why: {', '.join(REASONS)}.")] = "manual",
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the reply and print it.")] = False,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Wake an agent. Requests within 250 ms become one run."""
    if reason not in REASONS:
        raise WrongUse(f"--reason is one of {', '.join(REASONS)}, not {reason!r}.")
    place = chosen(ctx, db)
    if wait and place.server:
        from wakeful.console.remote import ServerRefused

        raise ServerRefused(f"--wait needs the store, and under {TOKEN} wakeful asks the server: leave it out.")

    async def work(scheduler: Scheduler) -> dict[str, Any]:
        asked = await scheduler.agents.request_wake(name, reason)
        if server_of(scheduler) is None:
            _say_no_server(place)
        elif wait and asked["run"] is not None and asked["waits_for"] is None:
            asked = await _ended(scheduler, asked)
        return asked

    asked = change(place, work)
    ended = asked["run"] if isinstance(asked["run"], dict) else None
    if as_json:
        print_json(asked if ended is None else ended)
    elif ended is not None:
        _say_ended(name, ended)
    elif asked["wake_at"] is None:
        say(f"{name} is paused: it is not woken.")
    else:
        joined = ", with an earlier request" if asked["coalesced"] else ""
        say(f"{name} is woken ({asked['reason']}){joined}: {asked['run']}")
    _say_waiting(asked)
    if wait and (ended is None or ended["outcome"] not in ("success", "noop")):
        raise typer.Exit(ScheduleTriggerError.exit_code if ended is None else 1)  # without an end there is no reply


def _say_waiting(asked: dict[str, Any]) -> None:
    """Say that the agent is not woken soon, also to a caller that waits for it."""
    if asked["waits_for"] is None:
        return
    name = asked["agent"]
    until = f" until {spoken(_ms(asked['waits_until']))}" if asked["waits_until"] is not None else ""
    say_note(f"{name} waits{until} ({asked['waits_for']}): wakeful explain {name}.wake says why.")


def _say_ended(name: str, ended: dict[str, Any]) -> None:
    output = ended["output"] if isinstance(ended["output"], dict) else {}
    if ended["error"]:
        say(f"{name} failed: {ended['error']}")
    elif ended["outcome"] == "deferred":
        until = f" until {spoken(_ms(ended['until']))}" if ended["until"] is not None else ""
        say(f"{name} is deferred{until}: {ended['output']}")
    elif output.get("reply") and output["outcome"] != "ok-ack":
        say_text(output["reply"])
    else:
        say(f"{name}: {output.get('outcome') or ended['outcome']}")


async def _ended(scheduler: Scheduler, asked: dict[str, Any]) -> dict[str, Any]:
    """The request with the end of its run, or with what the run waits for where that takes long."""
    run_id = asked["run"]
    while True:
        run = await scheduler.get_run(run_id)
        if run is None or run.status == "done":
            break
        if server_of(scheduler) is None:
            raise ScheduleTriggerError(f"The server ended while {run_id} was {run.status}.")
        waits = await held_up(scheduler, run_id)
        if waits is not None and waits_long(waits):
            until = iso(waits.until) if waits.until is not None else None
            return {**asked, "waits_for": waits.reason, "waits_until": until}
        await sleep(ASK_S)
    outcome, output, error = (None, None, None) if run is None else (run.outcome, run.output, run.error)
    until = await again_at(scheduler, run) if run is not None and outcome == "deferred" else None
    return {**asked, "run": {"run": run_id, "outcome": outcome, "output": output, "error": error, "until": until}}


@app.command("event")
def event(
    ctx: typer.Context,
    *,
    name: Name,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text of the event.", show_default=False)],
    key: Annotated[
        str | None, typer.Option("--key", metavar="KEY", help="A newer event with the same key replaces this one.")
    ] = None,
    source: Annotated[str | None, typer.Option("--source", metavar="NAME", help="Where the event comes from.")] = None,
    wake: Annotated[bool, typer.Option("--wake", help="Wake the agent for it.")] = False,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Add an event that the agent gets when it is next woken."""

    async def work(scheduler: Scheduler) -> dict[str, Any]:
        return await scheduler.agents.add_event(name, text, source=source, context_key=key, wake=wake)

    added = change(chosen(ctx, db), work)
    if as_json:
        print_json(added)
    else:
        waits = "waits" if added["waiting"] == 1 else "wait"
        say(f"{added['id']}: {count(added['waiting'], 'event')} {waits} for {name}.")


@app.command("reset-session")
def reset_session(ctx: typer.Context, *, name: Name, as_json: Json = False, db: Db = None) -> None:
    """Forget the sessions of an agent, so that new ones begin."""
    forgotten = change(chosen(ctx, db), lambda scheduler: scheduler.agents.reset_session(name))
    if as_json:
        print_json({"forgotten": forgotten})
    else:
        say(f"{name}: {count(forgotten, 'session')} forgotten.")


@app.command("pause")
def pause(ctx: typer.Context, *, name: Name, as_json: Json = False, db: Db = None) -> None:
    """Pause all jobs of an agent. Runs in progress finish."""
    _say_acted(_act(ctx, db, name, pause_agent), f"{name} is paused.", as_json=as_json)


@app.command("resume")
def resume(ctx: typer.Context, *, name: Name, as_json: Json = False, db: Db = None) -> None:
    """Resume all jobs of an agent. Waiting events wake it."""
    _say_acted(_act(ctx, db, name, resume_agent), f"{name} is resumed.", as_json=as_json)


def _act(ctx: typer.Context, db: str | None, name: str, act: Callable[..., Acted]) -> Acted:
    return change(
        chosen(ctx, db),
        lambda scheduler: scheduler.transact(lambda tx, context: act(tx, context, name), rights=rights_here()),
    )


def _say_acted(done: Acted, sentence: str, *, as_json: bool) -> None:
    if as_json:
        print_json({**done.agent, "action": done.action})
    else:
        say(sentence)
        say_undo(done.action)


@app.command("move")
def move(
    ctx: typer.Context,
    *,
    name: Annotated[str, typer.Argument(metavar="FROM", help="An agent, also one that is gone.", show_default=False)],
    to: Annotated[str, typer.Argument(metavar="TO", help="The agent that gets it.", show_default=False)],
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Move what waits for an agent, also one that is gone, to another."""
    moved = change(chosen(ctx, db), lambda s: s.transact(lambda tx, context: move_all(tx, context, name, to)))
    if as_json:
        print_json(moved._asdict())
        return
    say(f"{count(moved.items, 'work item')} and {count(moved.events, 'event')} moved from {name} to {to}.")
    if moved.left:
        known = f"{to} has them already, or not the source that they come from"
        say_note(f"{count(moved.left, 'work item')} left with {name}: {known} (wakeful work list {name}).")


def _say_no_server(place: StoreLocation) -> None:
    say_note(f"No server is running on {place}: the agent is woken when one does (wakeful serve).")
