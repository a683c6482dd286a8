"""The files that let systemd and launchd run a server, and where they belong. Only texts: nothing is started here."""

from __future__ import annotations

import os
import plistlib
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

NAME = "wakeful"
LABEL = "org.wakeful.server"
STATE = Path("/var/lib/wakeful")
STOP_S = 45
"""Longer than `--shutdown-wait`, so that running jobs can finish."""

#: What a server and ordinary jobs never need. A job that does: systemctl edit wakeful.
HARDENED = """\
NoNewPrivileges=yes
UMask=0077
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
"""
#: The same, where systemd runs as root and can keep more away.
HARDENED_SYSTEM = """\
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
RestrictNamespaces=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
CapabilityBoundingSet=
KeyringMode=private
RemoveIPC=yes
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
"""
_SPECIAL = re.compile(r"""[\s"'\\]""")


class ServiceUnit(NamedTuple):
    """A server to be run by the system's supervisor."""

    program: tuple[str, ...]
    folder: Path
    store: str | None = None
    system: bool = False
    user: str = NAME  # of a system unit


def program() -> tuple[str, ...]:
    """This program, as a supervisor can start it."""
    beside = Path(sys.executable).with_name("wakeful")
    found = str(beside) if beside.exists() else shutil.which("wakeful")
    return (found,) if found is not None else (sys.executable, "-m", "wakeful.cli")


def systemd_unit(service: ServiceUnit) -> str:
    """The unit of a server."""
    command = " ".join(_word(word) for word in (*service.program, "serve"))
    environment = f"Environment={_word(f'WAKEFUL_DB={service.store}')}\n" if service.store is not None else ""
    owner = f"User={service.user}\nStateDirectory=wakeful\nStateDirectoryMode=0700\n" if service.system else ""
    secrets = "EnvironmentFile=-/etc/wakeful.env\n" if service.system else ""
    where = "/etc/systemd/system" if service.system else "~/.config/systemd/user"
    network = "After=network-online.target\nWants=network-online.target\n" if service.system else ""
    return (
        f"# {where}/wakeful.service: one Wakeful server. docs/service.md explains each line.\n"
        f"[Unit]\nDescription=Wakeful scheduler\n{network}\n"
        f"[Service]\n{owner}WorkingDirectory={_plain(str(service.folder))}\n{environment}{secrets}ExecStart={command}\n"
        f"Restart=always\nRestartSec=2\nKillMode=mixed\nTimeoutStopSec={STOP_S}\n"
        f"{HARDENED}{HARDENED_SYSTEM if service.system else ''}\n"
        f"[Install]\nWantedBy={'multi-user' if service.system else 'default'}.target\n"
    )


def _plain(text: str) -> str:
    """A text in which systemd fills in nothing."""
    return text.replace("%", "%%")


def _word(text: str) -> str:
    """A text as one word of a unit."""
    if not _SPECIAL.search(text):
        return _plain(text)
    quoted = _plain(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}"'


def launchd_plist(service: ServiceUnit) -> str:
    """The property list of a server."""
    about: dict[str, object] = {
        "Label": LABEL,
        "ProgramArguments": [*service.program, "serve"],
        "WorkingDirectory": str(service.folder),
        "RunAtLoad": True,
        "KeepAlive": True,
        "ExitTimeOut": STOP_S,
        "Umask": 0o077,
        "StandardErrorPath": str(service.folder / "wakeful.log"),
    }
    if service.store is not None:
        about["EnvironmentVariables"] = {"WAKEFUL_DB": service.store}
    if service.system:
        about["UserName"] = service.user
    return plistlib.dumps(about).decode()


def is_mac() -> bool:
    """Whether launchd runs services here, and not systemd."""
    return sys.platform == "darwin"


def place(*, system: bool) -> Path:
    """Where the file belongs."""
    home = Path.home()
    if is_mac():
        folder = Path("/Library/LaunchDaemons") if system else home / "Library/LaunchAgents"
        return folder / f"{LABEL}.plist"
    configured = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    folder = Path("/etc/systemd/system") if system else configured / "systemd/user"
    return folder / f"{NAME}.service"


def written(service: ServiceUnit) -> str:
    """The file for this machine."""
    return launchd_plist(service) if is_mac() else systemd_unit(service)


def started_program(text: str) -> str | None:
    """The program that a unit or property list starts; None where it names none."""
    if text.startswith("<?xml"):
        found = plistlib.loads(text.encode()).get("ProgramArguments") or [None]
        return found[0] if isinstance(found[0], str) else None
    lines = [line.partition("=")[2] for line in text.splitlines() if line.startswith("ExecStart=")]
    words = shlex.split(lines[-1]) if lines else []
    return words[0].replace("%%", "%") if words else None


def look() -> tuple[str, bool, str, str | None] | None:
    """For `doctor`: whether what an installed service starts is there; None where no service is installed."""
    for system in (False, True):
        file = place(system=system)
        if not file.is_file():
            continue
        started = started_program(file.read_text(encoding="utf-8", errors="replace"))
        if started is None or not os.access(started, os.X_OK):
            again = f"wakeful service install --{'system' if system else 'user'}"
            return "service", False, f"{file} is for {started}, which is not there", f"write it again: {again}"
        return "service", True, f"{file} is for {started}", None
    return None
