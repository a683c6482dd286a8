"""`service`: let systemd or launchd run the server, so that it starts with the machine and after a crash."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from wakeful.child_processes import TookTooLong, clean_environment, run_to_end
from wakeful.console.failures import WrongUse, say_note
from wakeful.console.output import say, say_text
from wakeful.console.store_location import ConfigFile, Db, given_store, nearest_config, place_beside
from wakeful.console.tables import Json, print_json
from wakeful.errors import SchedulerError
from wakeful.surfaces.cli import service_units as units
from wakeful.surfaces.cli.app import SERVER, app

group = typer.Typer(no_args_is_help=True, help="Run the server as a service of systemd or launchd.")
app.add_typer(group, name="service", rich_help_panel=SERVER)

System = Annotated[
    bool | None,
    typer.Option("--system/--user", help="For the whole machine, or for you (default: you, unless you are root)."),
]
#: What a session of a user needs to reach its own supervisor.
PASSED = ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "XDG_CONFIG_HOME")
PATIENCE_S = 60


class NoService(SchedulerError):
    """There is no service to look at or to remove."""

    exit_code = 3
    code = "no_service"


@group.command("install")
def install(
    ctx: typer.Context,
    *,
    system: System = None,
    user: Annotated[str, typer.Option("--as", metavar="USER", help="Who runs a --system service.")] = units.NAME,
    start: Annotated[bool, typer.Option("--start/--no-start", help="Also enable and start it.")] = True,
    as_json: Json = False,
    config: ConfigFile = None,
    db: Db = None,
) -> None:
    """Write the service's file, show it, and start the service."""
    is_system = _is_system(system)
    service = _system_service(user) if is_system else _own_service(ctx, config, db)
    file, text = units.place(system=is_system), units.written(service)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        file.chmod(0o644 if is_system else 0o600)  # the address of a user's store may have a password
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise WrongUse(f"{file} cannot be written ({error.strerror}): --system needs root, --user does not.") from error
    if not as_json:
        say(f"Wrote {file}:")
        say_text(text)
    started = start and _begin(file, system=is_system)
    if as_json:
        print_json({"file": str(file), "text": text, "started": started})
    elif started:
        say("Started. wakeful service status shows how it is.")
    else:
        say_note(f"Start it with: {' && '.join(' '.join(one) for one in _beginning(file, system=is_system))}")


@group.command("uninstall")
def uninstall(*, system: System = None, as_json: Json = False) -> None:
    """Stop the service and remove its file; the store stays."""
    is_system = _is_system(system)
    file = _installed(is_system)
    said = [_call(command) for command in _ending(file, system=is_system)]
    file.unlink()
    if not units.is_mac():
        said.append(_call(_systemctl("daemon-reload", system=is_system)))
    if as_json:
        print_json({"file": str(file), "removed": True})
        return
    _show(*said)
    say(f"Removed {file}.")


@group.command("status")
def status(*, system: System = None, as_json: Json = False) -> None:
    """Say whether the service is installed, and how it is."""
    is_system = _is_system(system)
    file = _installed(is_system)
    started = units.started_program(file.read_text(encoding="utf-8", errors="replace"))
    show = _systemctl("status", "--no-pager", "--lines=0", units.NAME, system=is_system)
    said = _call(["launchctl", "list", units.LABEL] if units.is_mac() else show)
    if as_json:
        print_json({"file": str(file), "program": started, "running": said.ok, "supervisor": said.text})
        return
    say(f"Installed: {file}, for {started}.")
    _show(said)


def _is_system(given: bool | None) -> bool:  # noqa: FBT001 - the one option of all three commands
    return os.geteuid() == 0 if given is None else given


def _installed(system: bool) -> Path:  # noqa: FBT001 - as above
    file = units.place(system=system)
    if not file.is_file():
        scope = "system" if system else "user"
        raise NoService(f"There is no service at {file}: wakeful service install --{scope} makes one.")
    return file


def _own_service(ctx: typer.Context, config: Path | None, db: str | None) -> units.ServiceUnit:
    """A server for this user: with the configuration of this directory, on the store that commands here use."""
    file = config if config is not None else nearest_config(Path.cwd())
    folder = file.resolve().parent if file is not None else Path.home()
    place = place_beside(file, given_store(ctx, db), os.environ, Path.cwd())
    program = units.program()
    if file is not None and file.name != "wakeful.yaml":
        raise WrongUse(f"A service reads wakeful.yaml in its folder: call {file} so.")
    if not f"{folder}{place.url}".isprintable():
        raise WrongUse("A service cannot be in a folder whose name has a line break or the like.")
    return units.ServiceUnit(program, folder, place.url)


def _system_service(user: str) -> units.ServiceUnit:
    return units.ServiceUnit(units.program(), units.STATE, str(units.STATE / "wakeful.db"), system=True, user=user)


def _begin(file: Path, *, system: bool) -> bool:
    """Let the supervisor start the service; whether it did."""
    for command in _beginning(file, system=system):
        said = _call(command)
        if not said.ok:
            _show(said)
            return False
    return True


def _beginning(file: Path, *, system: bool) -> list[list[str]]:
    if units.is_mac():
        return [["launchctl", "load", "-w", str(file)]]
    return [_systemctl("daemon-reload", system=system), _systemctl("enable", "--now", units.NAME, system=system)]


def _ending(file: Path, *, system: bool) -> list[list[str]]:
    if units.is_mac():
        return [["launchctl", "unload", "-w", str(file)]]
    return [_systemctl("disable", "--now", units.NAME, system=system)]


def _systemctl(*words: str, system: bool) -> list[str]:
    return ["systemctl", *([] if system else ["--user"]), *words]


class SupervisorReply(NamedTuple):
    """What a supervisor answered."""

    ok: bool
    text: str


def _call(command: list[str]) -> SupervisorReply:
    """Ask the supervisor."""
    try:
        done = run_to_end(command, env=clean_environment(PASSED), seconds=PATIENCE_S)
    except (OSError, TookTooLong) as error:
        return SupervisorReply(ok=False, text=f"{' '.join(command)} cannot be run: {error}")
    said = [part.decode("utf-8", "replace").strip() for part in (done.output, done.errors)]
    return SupervisorReply(done.exit_code == 0, "\n".join(filter(None, said)))


def _show(*answers: SupervisorReply) -> None:
    for said in answers:
        if said.text:
            say_text(said.text, error=not said.ok)
