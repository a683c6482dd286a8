"""The peers' own environments, below .bench: made once, again when a pin changes.

They never share an environment with Wakeful or, where their versions exclude each other, with one another.
"""

from __future__ import annotations

import compileall
import hashlib
import json
import subprocess
import venv

from bench.contenders import CACHE, PEERS, ROOT, Contender

PINS = {
    "peers": ROOT / "bench" / "peers-requirements.txt",
    "peers-apscheduler4": ROOT / "bench" / "peers-requirements-apscheduler4.txt",
    "peers-postgres": ROOT / "bench" / "peers-requirements-postgres.txt",
}


def compile_ours() -> None:
    """Bytecode for our own tree, as pip makes it for the peers: no contender is timed while compiling."""
    for folder in ("src", "bench"):
        compileall.compile_dir(ROOT / folder, quiet=2)


#: The environments of those who are measured on PostgreSQL.
POSTGRES_ONLY = frozenset({"peers-postgres"})


def set_up(only: frozenset[str] | None = None) -> None:
    """Make or renew the environments, or only some; quick when nothing changed."""
    for name, pins in PINS.items():
        if only is not None and name not in only:
            continue
        folder = CACHE / name
        stamp, wanted = folder / ".pins", hashlib.sha256(pins.read_bytes()).hexdigest()
        if stamp.exists() and stamp.read_text(encoding="ascii") == wanted:
            continue
        print(f"Setting up {folder.relative_to(ROOT)} ...", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        command = [
            str(folder / "bin" / "python"),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--require-hashes",
            "--no-deps",  # the pins are all there is; pip may look for others where one is needed with an extra
            "-r",
            str(pins),
        ]
        subprocess.run(command, check=True)
        stamp.write_text(wanted, encoding="ascii")


_ASK = "import importlib.metadata as m, json, sys; print(json.dumps({name: m.version(name) for name in sys.argv[1:]}))"


def versions(contender: Contender) -> str:
    """`huey 3.5.4`, as installed."""
    done = subprocess.run(
        [contender.python, "-c", _ASK, *contender.packages], stdout=subprocess.PIPE, text=True, check=True
    )
    return ", ".join(f"{name} {version}" for name, version in json.loads(done.stdout).items())


def cron_versions() -> str:
    done = subprocess.run(
        [PEERS[0].python, "-c", _ASK, "cronsim", "croniter"], stdout=subprocess.PIPE, text=True, check=True
    )
    return ", ".join(f"{name} {version}" for name, version in json.loads(done.stdout).items())
