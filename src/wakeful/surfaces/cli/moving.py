"""`import` and `export`: jobs of other schedulers into a store or a file, and everything of a store as plain files."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wakeful import Scheduler
from wakeful.console.failures import WrongUse, say_note
from wakeful.console.opening import change, default_zone, now_ms, read, server_of
from wakeful.console.output import say
from wakeful.console.store_location import Db, StoreLocation, chosen
from wakeful.console.tables import Json, print_json
from wakeful.counting import counted
from wakeful.surfaces.cli.app import SERVER, app
from wakeful.triggers import system_zone
from wakeful.triggers.durations import interval_ms

if TYPE_CHECKING:
    from wakeful.moving.checking import Batch, Checked, ImportContext

CHANGES = 5  # as of `plan`
_MARKS = {"maps": "+", "differs": "~", "refused": "!"}

Format = Annotated[str, typer.Argument(metavar="FORMAT", help="What to read, or auto.", show_default=False)]
Source = Annotated[str, typer.Argument(metavar="PATH", help="The file or folder.", show_default=False)]
Into = Annotated[str | None, typer.Option("--into", metavar="FILE", help="Write them into this wakeful.yaml instead.")]


@app.command("import", rich_help_panel=SERVER)
def import_(
    ctx: typer.Context,
    *,
    form: Format,
    source: Source,
    yes: Annotated[bool, typer.Option("--yes", help="Import what can be; without it, nothing is changed.")] = False,
    into: Into = None,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Report what can be imported from another scheduler, or import it.

    FORMAT is crontab, systemd, caco, openalice, herdctl, halo, openclaw, apscheduler3, celerybeat, wakeful (an export)
    or auto. Exits with 5 if there is something to import.
    """
    from wakeful.moving.formats import AUTO, FORMATS, WAKEFUL, guess

    if form not in FORMATS:
        raise WrongUse(f"FORMAT is {', '.join(FORMATS[:-1])} or {FORMATS[-1]}, not {form!r:.40}.")
    path = Path(source)
    name = guess(path) if form == AUTO else form
    if form == AUTO and not as_json:
        say_note(f"{source} looks like {name}.")
    place = chosen(ctx, db)
    if name == WAKEFUL:
        if into is not None:
            raise WrongUse("An export has a wakeful.yaml of its own: --into is for other formats.")
        batch = _from_export(path, place, yes=yes)
    else:
        batch = _from_others(name, path, place, into, yes=yes)
    _report(name, source, batch, done=yes or into is not None, as_json=as_json)
    if batch.new and not yes and into is None:
        raise typer.Exit(CHANGES)


def _from_others(name: str, path: Path, place: StoreLocation, into: str | None, *, yes: bool) -> Batch:
    from wakeful.moving import storing
    from wakeful.moving.checking import check
    from wakeful.moving.formats import read_source

    reading = read_source(name, path)
    if into is not None:
        return _into_file(name, path, Path(into))
    batch = check(reading, _terms(Path.cwd(), default_zone(place)))
    if not yes:
        return read(place, lambda scheduler: storing.compare(scheduler, batch), batch)

    async def work(scheduler: Scheduler) -> tuple[Batch, dict[str, Any] | None]:
        return await storing.store(scheduler, batch), server_of(scheduler)

    done, server = change(place, work, create=True)
    if server is None and done.new:
        say_note(f"No server is running on {place}: nothing fires until one does (wakeful serve).")
    return done


def _from_export(path: Path, place: StoreLocation, *, yes: bool) -> Batch:
    from wakeful.console.opening import user_name
    from wakeful.moving import returning

    if not yes:
        nothing = returning.read(path, Scheduler(place.url))
        return read(place, lambda scheduler: returning.compare(scheduler, nothing), nothing).batch

    async def work(scheduler: Scheduler) -> returning.Returned:
        return await returning.store(scheduler, returning.read(path, scheduler), user_name())

    done = change(place, work, create=True)
    if done.batch.new and done.secrets:
        say_note(f"Set these where the server runs, for no secret is exported: {', '.join(done.secrets)}.")
    if done.held:
        say_note("Work is due already, so everything is paused: look through wakeful list, then wakeful resume --all.")
    return done.batch


def _into_file(name: str, path: Path, file: Path) -> Batch:
    from wakeful.config.reading import basics_in
    from wakeful.moving import writing
    from wakeful.moving.checking import check
    from wakeful.moving.formats import read_source
    from wakeful.triggers import settled_zone, zone_name

    given = basics_in(file).timezone if file.exists() else None
    zone = settled_zone(zone_name(given), system_zone()) if given is not None else system_zone()
    batch = writing.compare_file(check(read_source(name, path), _terms(file.resolve().parent, zone)), file)
    if batch.new:
        writing.write(batch, file, f"wakeful import {name} {shlex.quote(str(path))}")
    return batch


def _terms(folder: Path, zone: str) -> ImportContext:
    from wakeful.moving.checking import ImportContext

    return ImportContext(folder, zone, system_zone(), now_ms())


@app.command("export", rich_help_panel=SERVER)
def export(
    ctx: typer.Context,
    *,
    folder: Annotated[str, typer.Argument(metavar="DIR", help="An empty folder, or a new one.", show_default=False)],
    runs: Annotated[str, typer.Option("--runs", metavar="DURATION", help="How far back runs and events go.")] = "30d",
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Write jobs, states, runs and events as plain files. No secret is among them.

    wakeful import wakeful DIR reads them again. The files are wakeful.yaml, state.json, runs.ndjson and events.ndjson.
    """
    from wakeful.moving.exporting import export as export_to

    place, since = chosen(ctx, db), now_ms() - interval_ms(runs)
    done = change(place, lambda scheduler: export_to(scheduler, Path(folder), since))
    if as_json:
        print_json({"folder": folder, **done._asdict()})
    else:
        counts = (counted(done.jobs, "job"), counted(done.runs, "run"), counted(done.events, "event"))
        say(f"Exported {counts[0]}, {counts[1]} and {counts[2]} to {folder}")
        say(f"  files  {', '.join(done.files)}")
    if done.left:
        say_note(f"Jobs of workflows are not exported, their files make them: {', '.join(done.left)}.")
    if done.secrets:
        say_note(f"No secret is exported: set {', '.join(done.secrets)} where it is imported.")


# -- in words ---------------------------------------------------------------------------------------------------------


def _report(form: str, source: str, batch: Batch, *, done: bool, as_json: bool) -> None:
    if as_json:
        entries = [_as_data(one) for one in batch.entries]
        print_json({"format": form, "entries": entries, "imported": len(batch.new) if done else 0})
        return
    for one in batch.entries:
        for line in _lines(one):
            say(line)
    number, refused = len(batch.new), sum(one.entry is None for one in batch.entries)
    cannot = f" {refused} cannot be." if refused else ""
    if done:
        say(f"Imported {counted(number, 'job')}.{cannot}")
    elif number:
        say(
            f"{counted(number, 'job')} can be imported.{cannot} Nothing was changed: add --yes, or --into wakeful.yaml."
        )
    else:
        say(f"There is nothing to import from {source}.{cannot}")


def _lines(one: Checked) -> Iterator[str]:
    found = one.found
    if one.entry is None:
        yield f"! {found.name}  {found.refused}  ({found.source})"
        return
    mark = "=" if one.exists else _MARKS[one.status]
    off = "" if one.entry.enabled else ", disabled"
    there = ", there already" if one.exists else ""
    yield f"{mark} {found.name}  {one.entry.new.trigger.brief()}{off}{there}  ({found.source})"
    if not one.exists:
        yield from (f"    {note}" for note in found.notes)


def _as_data(one: Checked) -> dict[str, Any]:
    found = one.found
    notes = [found.refused] if one.entry is None else list(found.notes)
    return {
        "source": found.source,
        "name": found.name,
        "status": one.status,
        "job": dict(one.job) if one.entry is not None else None,
        "agent": found.agent,
        "exists": one.exists,
        "notes": notes,
    }
