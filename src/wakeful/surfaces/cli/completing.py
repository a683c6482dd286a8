"""What could come next on a command line: asked by the shell with every Tab, so it is quick, bounded and quiet.

Job names come from the store that the typed command would use. What takes too long or cannot be read gives nothing.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.console.output import say

if TYPE_CHECKING:
    from wakeful import Job, Scheduler

WAIT_S = 3.0  # for the store
MOST = 100  # names
SIGNS = frozenset({":", "::", "="})
TAKES_JOBS = frozenset(
    {
        "edit",
        "show",
        "remove",
        "pause",
        "resume",
        "run",
        "runs",
        "logs",
        "cancel",
        "retry",
        "approve",
        "reject",
        "explain",
        "ledger",
        "next",
    }
)
SEVERAL = frozenset({"remove", "pause", "resume"})
FLAGS = frozenset({"--json", "--all", "--yes", "-y", "--wait", "--follow", "-f", "--dry-run"})
JOB_OPTIONS = frozenset({"--after"})


class Candidate(NamedTuple):
    """A word that could come next, and what it means."""

    word: str
    about: str = ""


Jobs = Callable[[str, str | None], list[Candidate]]


def answer(argv: Sequence[str]) -> int:
    """`wakeful _complete SHELL WORD...`: print what the last word could become, one candidate a line."""
    shell, *words = argv or ["bash"]
    words, stem = joined(words or [""]) if shell == "bash" else (words or [""], "")
    quote = words[-1][:1] if words[-1][:1] in ("'", '"') else ""
    words[-1] = re.sub(r"\\(.)", r"\1", words[-1].removeprefix(quote))
    for one in candidates(words, _jobs_in_time):
        line = shown(one, shell, stem, quote)
        if line is not None:
            say(line)
    return 0


def joined(words: Sequence[str]) -> tuple[list[str], str]:
    """The words as typed, where bash took them apart at `:` and `=`; and what bash keeps of the last one."""
    found = [""]
    glued = True
    for word in words:
        is_sign = word in SIGNS
        found = [*found[:-1], found[-1] + word] if glued or is_sign else [*found, word]
        glued = is_sign
    is_cut = len(words) > 1 and not SIGNS.isdisjoint(words[-2:])
    cut = max(found[-1].rfind(":"), found[-1].rfind("=")) + 1
    return found, found[-1][:cut] if is_cut else ""


def shown(candidate: Candidate, shell: str, stem: str = "", quote: str = "") -> str | None:
    """A candidate as the shell wants it: a name can hold anything that can be printed, and none of it may be run."""
    word, about = candidate
    if shell == "zsh":
        return f"{word.replace(chr(92), chr(92) * 2).replace(':', chr(92) + ':')}:{about}"
    if shell == "fish":
        return f"{word}\t{about}"
    rest = word.removeprefix(stem)
    if quote:
        return rest if re.fullmatch(r"[\w@%+=:,./ -]*", rest, re.ASCII) else None
    return re.sub(r"([^\w@%+=:,./-])", r"\\\1", rest)


def candidates(words: Sequence[str], jobs: Jobs | None = None) -> list[Candidate]:
    """What the last of these words could become."""
    *before, current = words
    jobs = jobs if jobs is not None else job_names
    if "--" in before:  # a command of its own, which the shell knows more about
        return []
    option, equals, value = current.partition("=")
    if equals and option.startswith("--"):
        return [Candidate(f"{option}={one.word}", one.about) for one in _values(before, option, value, jobs)]
    plain, store = _without_store(before)
    if plain and plain[0] in TAKES_JOBS and not current.startswith("-"):
        last = plain[-1]
        if last in FLAGS or not last.startswith("-"):
            places = [word for word in plain[1:] if not word.startswith("-")]
            return jobs(current, store) if plain[0] in SEVERAL or not places else []
    return _from_parser(before, current, jobs)


def _values(before: Sequence[str], option: str, value: str, jobs: Jobs) -> list[Candidate]:
    if option in JOB_OPTIONS and before and before[0] in ("add", "edit"):
        return jobs(value, _without_store(before)[1])
    from wakeful.kernel.actions.tokens import ROLES
    from wakeful.scheduler.jobs import IF_EXISTS
    from wakeful.store.listing import STATUS_SQL
    from wakeful.surfaces.cli.definition import flags

    known = {"--status": tuple(STATUS_SQL), "--role": ROLES, "--if-exists": IF_EXISTS}
    known |= {field.option: field.choices for _, field, _ in flags()}
    return [Candidate(one) for one in known.get(option, ()) if one.startswith(value)]


def _without_store(words: Sequence[str]) -> tuple[list[str], str | None]:
    """The words without `--db URL`, and what it says."""
    rest, store = [], None
    ahead = iter(words)
    for word in ahead:
        if word == "--db":
            store = next(ahead, None)
        elif word.startswith("--db="):
            store = word.removeprefix("--db=")
        else:
            rest.append(word)
    return rest, store


def _from_parser(before: Sequence[str], current: str, jobs: Jobs) -> list[Candidate]:
    """Commands, options and their values."""
    from wakeful.surfaces.cli import command_tree
    from wakeful.surfaces.cli.help import summary

    command, last = command_tree(), before[-1] if before else ""
    for word in before:
        below = getattr(command, "commands", {})
        if word in below:
            command = below[word]
    options = {
        flag: one
        for one in command.get_params(command.make_context(None, [], resilient_parsing=True))
        for flag in (*one.opts, *one.secondary_opts)
        if flag.startswith("-")
    }
    if last in options and not options[last].is_flag:
        return _values(before, last, current, jobs)
    if current.startswith("-"):
        known = [(flag, one) for flag, one in options.items() if flag.startswith("--") and flag.startswith(current)]
        return [Candidate(flag, str(one.help or "")) for flag, one in known if flag not in before or one.multiple]
    names = [(name, one) for name, one in getattr(command, "commands", {}).items() if name.startswith(current)]
    if names:
        return [Candidate(name, summary(one.help or "")) for name, one in names]
    choices = _choices(command) if command.name == last else ()
    return [Candidate(one) for one in choices if one.startswith(current)]


def _choices(command: Any) -> tuple[str, ...]:
    """The words an argument can be, where its name lists them: bash|zsh|fish."""
    listed = [str(one.metavar) for one in command.params if one.param_type_name == "argument" and one.metavar]
    return tuple(listed[0].split("|")) if listed and "|" in listed[0] else ()


def _jobs_in_time(prefix: str, store: str | None) -> list[Candidate]:
    """The same for a process that only completes: it ends where the store does not answer in time."""
    # Waited for in threads that nothing else ends.
    late = threading.Timer(WAIT_S, os._exit, [0])
    late.daemon = True
    late.start()
    try:
        return job_names(prefix, store)
    finally:
        late.cancel()


def job_names(prefix: str, store: str | None) -> list[Candidate]:
    """The jobs of a store whose names begin so, 100 at most."""
    from wakeful.console.opening import read
    from wakeful.console.store_location import find_place
    from wakeful.domains import hidden_kinds
    from wakeful.errors import SchedulerError
    from wakeful.kernel.model.job import Job as JobView
    from wakeful.store.jobs import JobFilter

    async def work(scheduler: Scheduler) -> list[Job]:
        exact = await scheduler.get_job(prefix) if prefix else None
        wanted = JobFilter(after=prefix, limit=MOST, hidden=hidden_kinds())
        found = await scheduler.read(lambda tx: [JobView(*pair, tx.now) for pair in tx.jobs.matching(wanted)])
        return [*([exact] if exact is not None and exact.name == prefix else []), *found]

    nothing: list[Job] = []
    try:
        found = read(find_place(store, os.environ, Path.cwd()), work, nothing)
    except (SchedulerError, OSError):  # a Tab asks for nothing that could fail: there is nothing to complain about
        return []
    return [Candidate(job.name, job.schedule) for job in found if job.name.startswith(prefix)]
