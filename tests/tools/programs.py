"""Agent programs: where they come from, and how each is pointed at the stand-in for a model.

`refused`, `limit` and `overload` say what Wakeful must make of a call that meets them. Some programs wait out a limit
or an overload inside: those are given little time, and judged by what they printed until then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.tools import installing

KEY = "not-a-key"
MODEL = "stand-in"
Settings = dict[str, Any]  # of a runner


class Program(NamedTuple):
    """One program. `runner` gives the settings of a runner that asks the server at an address."""

    install: Callable[[], str] | str  # gives the PATH for it; or why it cannot be had
    runner: Callable[[str, Path], Settings]
    allowed: Settings | None = None  # what else lets it use its shell
    keeps_sessions: bool = True
    knows_sessions: bool = True  # and says so where one is gone; else it begins one of that id
    reports_tokens: bool = True
    expected: Mapping[str, str] = {}
    slow: tuple[str, ...] = ()  # cases that it waits out


FAILURES = {"limit": "Limited", "overload": "Overloaded", "refused": "Wrong"}


def claude(url: str, _: Path) -> Settings:
    quiet = ["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CLAUDE_CODE_MAX_RETRIES=0"]
    return {"env": [f"ANTHROPIC_BASE_URL={url}", f"ANTHROPIC_API_KEY={KEY}", *quiet]}


def codex(url: str, _: Path) -> Settings:
    retries = "request_max_retries=0,stream_max_retries=0"
    provider = f'{{name="standin",base_url="{url}/v1",wire_api="responses",env_key="STAND_IN_KEY",{retries}}}'
    options = ['model_provider="standin"', f"model_providers.standin={provider}", "check_for_update_on_startup=false"]
    # A model whose tools are as usual.
    return {
        "model": "gpt-5",
        "env": [f"STAND_IN_KEY={KEY}"],
        "args": [word for option in options for word in ("-c", option)],
    }


def gemini(url: str, home: Path) -> Settings:
    (home / ".gemini").mkdir(exist_ok=True)
    chosen = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    (home / ".gemini" / "settings.json").write_text(json.dumps(chosen))
    return {"env": [f"GOOGLE_GEMINI_BASE_URL={url}", f"GEMINI_API_KEY={KEY}", "GEMINI_TELEMETRY_ENABLED=false"]}


def opencode(url: str, _: Path) -> Settings:
    options = {"baseURL": f"{url}/v1", "apiKey": KEY}
    model = {"name": MODEL, "limit": {"context": 100_000, "output": 8000}, "cost": {"input": 1, "output": 2}}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "standin", "options": options, "models": {MODEL: model}}
    config = {"autoupdate": False, "share": "disabled", "model": f"standin/{MODEL}", "small_model": f"standin/{MODEL}",
              "provider": {"standin": provider}}  # fmt: skip
    return {"env": [f"OPENCODE_CONFIG_CONTENT={json.dumps(config)}", "OPENCODE_DISABLE_MODELS_FETCH=1"]}


def qwen(url: str, _: Path) -> Settings:
    env = [f"OPENAI_BASE_URL={url}/v1", f"OPENAI_API_KEY={KEY}", f"OPENAI_MODEL={MODEL}"]
    return {"env": [*env, "QWEN_TELEMETRY_ENABLED=false"], "args": ["--auth-type", "openai"]}


def copilot(url: str, _: Path) -> Settings:
    provider = {"BASE_URL": f"{url}/v1", "TYPE": "openai", "API_KEY": KEY}
    env = [f"COPILOT_PROVIDER_{name}={value}" for name, value in provider.items()]
    return {"env": [*env, f"COPILOT_MODEL={MODEL}", "COPILOT_OFFLINE=true"]}


def aider(url: str, _: Path) -> Settings:
    # A model whose price it knows.
    return {
        "model": "openai/gpt-4o",
        "args": ["--no-git"],
        "env": [f"OPENAI_API_BASE={url}/v1", f"OPENAI_API_KEY={KEY}"],
    }


def llm(url: str, home: Path) -> Settings:
    model = {"model_id": MODEL, "model_name": MODEL, "api_base": f"{url}/v1"}
    (home / "extra-openai-models.yaml").write_text(json.dumps([model]))
    return {"model": MODEL, "env": [f"LLM_USER_PATH={home}", f"OPENAI_API_KEY={KEY}"]}


def openclaw(url: str, home: Path) -> Settings:
    model = {"id": MODEL, "name": MODEL, "contextWindow": 100_000, "maxTokens": 8000}
    provider = {"baseUrl": f"{url}/v1", "apiKey": KEY, "api": "openai-completions", "models": [model]}
    config = {
        "models": {"mode": "merge", "providers": {"standin": provider}},
        "agents": {"defaults": {"model": {"primary": f"standin/{MODEL}"}}},
    }
    (home / ".openclaw").mkdir(exist_ok=True)
    (home / ".openclaw" / "openclaw.json").write_text(json.dumps(config))
    return {}


def nothing(_: str, __: Path) -> Settings:
    return {}


PROGRAMS: dict[str, Program] = {
    "claude": Program(
        lambda: installing.npm("claude", "@anthropic-ai/claude-code@latest"),
        claude,
        allowed={"tools": ["Bash"]},
    ),
    "codex": Program(
        lambda: installing.npm("codex", "@openai/codex@latest"),
        codex,
        allowed={"args": ["--dangerously-bypass-approvals-and-sandbox"]},
    ),
    "gemini": Program(
        lambda: installing.npm("gemini", "@google/gemini-cli@latest"),
        gemini,
        allowed={"args": ["--approval-mode", "yolo"]},
        slow=("overload",),
    ),
    "opencode": Program(
        lambda: installing.npm("opencode", "opencode-ai@latest"),
        opencode,
        allowed={},
        slow=("limit", "overload"),
    ),
    "qwen": Program(
        lambda: installing.npm("qwen", "@qwen-code/qwen-code@latest"),
        qwen,
        allowed={"args": ["--approval-mode", "yolo"]},
        expected={"limit": "Wrong", "overload": "Wrong"},  # it waits without a word
        slow=("limit", "overload"),
    ),
    "copilot": Program(
        lambda: installing.npm("copilot", "@github/copilot@latest"),
        copilot,
        allowed={"args": ["--allow-all-tools"]},
        reports_tokens=False,  # not with a model of one's own
        slow=("limit", "overload"),
    ),
    "aider": Program(
        lambda: installing.pip("aider", "aider-chat"),
        aider,
        keeps_sessions=False,
        slow=("limit", "overload"),
    ),
    "llm": Program(lambda: installing.pip("llm", "llm"), llm),
    "openclaw": Program(
        lambda: installing.npm("openclaw", "openclaw@latest", node="24"),
        openclaw,
        knows_sessions=False,
        slow=("overload",),
    ),
    "amp": Program("it talks to its maker's service alone", nothing),
    "cursor": Program("it is in no registry, and talks to its maker's service alone", nothing),
    "goose": Program("it is in no registry", nothing),
    "ollama": Program("it is in no registry, and runs models itself", nothing),
}
