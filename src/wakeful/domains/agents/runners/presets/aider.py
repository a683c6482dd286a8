"""aider: `aider --message-file`."""

from __future__ import annotations

from wakeful.domains.agents.runners.judging import Signs
from wakeful.domains.agents.runners.output import OutputForm
from wakeful.domains.agents.runners.presets.preset import OPTIONS, Preset

CALLED = (
    "aider", "--yes-always", "--no-pretty", "--no-stream", "--no-check-update", "--no-show-release-notes",
    "--no-show-model-warnings", "--no-detect-urls", "--analytics-disable", OPTIONS, "--message-file", "/dev/stdin",
)  # fmt: skip
COUNTED = (
    r"(?m)^Tokens: (?P<tokens_in>[\d.]+[kM]?) sent.*?, (?P<tokens_out>[\d.]+[kM]?) received\."
    r"(?:\s+Cost: \$[\d.]+ message, \$(?P<cost>[\d.]+) session)?"
)

AIDER = Preset(
    start=CALLED,
    resume=None,
    output=OutputForm(
        # Its own words first, then the reply; the line with the tokens comes only after a model's answer. What was
        # read once is not tried in another way, so that a long text takes no longer than its length.
        said=(
            r"(?sm)\A(?>(?:.*?^Repo-map:[^\n]*\n)?)\s*+(?>(?:^Empty response received from LLM[^\n]*)?)"
            r"(.*)^Tokens: [\d.]+[kM]? sent"
        ),
        trouble=r"(?sm)^litellm\.\w+: (.*?)(?=^The API provider|^Retrying in|^\s*$)",
        counted=COUNTED,
    ),
    signs=Signs(
        rate_limit=r"has rate limited you",
        overload=r"servers are down or overloaded|may be down or overloaded|litellm\.APIConnectionError",
        quota=r"exceeded your\s+current quota",
    ),
    about="aider",
    passes=("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"),
    cannot=("keep a session", "limit the tools of a run", "stop at a cost", "say when a rate limit ends"),
    model="--model",
    hints=(
        "it commits what it changes unless `args` has `--no-auto-commits`",
        "in a folder without a repository it makes one unless `args` has `--no-git`",
    ),
)
