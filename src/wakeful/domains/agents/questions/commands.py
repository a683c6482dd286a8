"""`wakeful agent ask`: a prompt for an agent, and its reply."""

from __future__ import annotations

from typing import Annotated

import typer

from wakeful.console.failures import say_error
from wakeful.console.finding import job_named
from wakeful.console.following import WELL, refuse_later, say_begun, until_done
from wakeful.console.opening import change, server_of
from wakeful.console.output import say, say_text
from wakeful.console.running_here import run_in_this_process
from wakeful.console.store_location import Db, chosen
from wakeful.console.tables import Json, print_json
from wakeful.domains.agents.questions import prepared
from wakeful.kernel.model.run import Run
from wakeful.scheduler import Scheduler


def ask(
    ctx: typer.Context,
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="An agent's name.", show_default=False)],
    prompt: Annotated[str, typer.Argument(metavar="PROMPT", help="What to ask it.", show_default=False)],
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the reply and print it.")] = False,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Ask an agent now. Without a running server, this command runs it itself and prints the reply.

    All questions to an agent share a session. With --wait the reply is printed and not delivered.
    """
    place = chosen(ctx, db)

    async def work(scheduler: Scheduler) -> Run | None:
        if server_of(scheduler) is None:
            zone = scheduler.host.default_zone
            question = await scheduler.transact(
                lambda tx, context: prepared(tx, context, name, prompt, deliver="none", zone=zone)
            )
            job = await job_named(scheduler, question.job)
            run = (await run_in_this_process(scheduler, place, job, question.payload)).run
            if run.outcome not in WELL:
                await refuse_later(scheduler, run)
            return run
        asked = await scheduler.agents.ask(name, prompt, deliver="none" if wait else None)
        if wait:
            return await until_done(scheduler, asked["run"])
        await say_begun(scheduler, asked["run"], name, as_json=as_json)
        return None

    ended = change(place, work)
    if ended is not None:
        _say_ended(name, ended, as_json=as_json)


def _say_ended(name: str, run: Run, *, as_json: bool) -> None:
    output = run.output if isinstance(run.output, dict) else {}
    if as_json:
        print_json(run.to_dict())
    elif output.get("reply"):
        say_text(output["reply"])
    elif run.outcome in WELL:
        say(f"{name} replied with nothing ({run.id}).")
    if run.outcome not in WELL:
        why = f": {run.error}" if run.error else ""
        say_error(f"{name} {f'ended as {run.outcome}' if run.outcome else f'is {run.status}'}{why} ({run.id})")
        raise typer.Exit(1)
