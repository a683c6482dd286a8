"""What is known of a program: how it is started and resumed, and what its output means."""

from __future__ import annotations

from typing import NamedTuple

from wakeful.domains.agents.runners.judging import Signs
from wakeful.domains.agents.runners.mcp_access import McpForm
from wakeful.domains.agents.runners.output import OutputForm

OPTIONS = "{options}"  # stands for the model, the tools, the cost limit and the `args` of a runner
NEW_SESSION = "{new_session}"  # for the id that a new session is given
SECONDS = "{seconds}"  # for the time that a call may take


class Preset(NamedTuple):
    """How one program is called and understood."""

    start: tuple[str, ...]
    resume: tuple[str, ...] | None
    output: OutputForm
    signs: Signs
    about: str
    cannot: tuple[str, ...] = ()
    model: str | None = None  # the option before its value; empty if the value stands alone
    needs_model: bool = False
    tools: str | None = None
    only_tools: str | None = None  # which tools there are at all, for runs that are fed by others
    no_read: tuple[str, ...] = ()  # options that keep it from reading files by itself, where such a run lacks `Read`
    takes_paths: bool = False  # it puts a file into its request where a prompt has `@path`
    max_cost: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    passes: tuple[str, ...] = ()  # variables with which it logs in: passed on where the server has them
    cumulative: bool = False  # its tokens are those of the whole session
    login_keys: tuple[str, ...] = ()  # without one of these, runs share a login that each of them may renew
    logged_in: tuple[str, ...] | None = None  # exits with 0 when a user is logged in
    mcp: McpForm | None = None  # how it is told of an MCP server for one run
    hints: tuple[str, ...] = ()  # what users of the preset should know
