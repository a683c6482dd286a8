"""`webhook`, `chat` and `untrusted` of an agent: what a model cannot see in them, and what they mean. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from wakeful.domains.agents.inbound import ID_DAYS_MS
from wakeful.domains.agents.inbound.signatures import key_of, scheme_of
from wakeful.domains.agents.runners.paths import read_path
from wakeful.errors import InvalidJob, InvalidSetting
from wakeful.patterns import Pattern
from wakeful.references import absolute, references_in

OUTSIDE = frozenset({"webhook", "chat"})
RUNNER_LIMITS = ("tools", "args", "model", "env", "max_cost", "timeout")
Place = tuple[str | int, ...]


class SectionProblem(NamedTuple):
    """Something that is wrong, and where."""

    where: Place
    message: str


def problems_of(schedule: Mapping[str, Any]) -> Iterator[SectionProblem]:
    """What is wrong with the section of a schedule that others start."""
    if schedule.get("chat") is not None:
        yield from _match_problems(schedule["chat"])
    elif schedule.get("webhook") is not None:
        yield from _webhook_problems(schedule["webhook"])


def _match_problems(chat: Mapping[str, Any]) -> Iterator[SectionProblem]:
    try:
        Pattern(chat.get("match") or "")
    except InvalidSetting as error:
        yield SectionProblem(("match",), str(error))


def _webhook_problems(webhook: Mapping[str, Any]) -> Iterator[SectionProblem]:
    verify = webhook.get("verify", "standard")
    if isinstance(verify, Mapping):
        described = list(_described_problems(verify))
        yield from (SectionProblem(("verify", *found.where), found.message) for found in described)
        if described:
            return
    scheme = scheme_of(webhook)
    if scheme.timestamp is not None and scheme.tolerance_ms > ID_DAYS_MS:
        yield SectionProblem(
            ("tolerance",), "must be at most 30d: for so long it is known which requests came already."
        )
    for secret in secrets_of(webhook):
        if not list(references_in(secret)):
            try:
                key_of(scheme, secret)
            except InvalidSetting as error:
                yield SectionProblem(("secret",), str(error))


def _described_problems(verify: Mapping[str, Any]) -> Iterator[SectionProblem]:
    """A scheme must bind what it relies on, or a captured request could be sent again and again."""
    if verify.get("algorithm") == "token":
        return
    signed = verify.get("signed", "{body}")
    timestamp, name = verify.get("timestamp") or {}, verify.get("id") or {}
    if "{body}" not in signed:
        yield SectionProblem(("signed",), "must hold {body}: else the body could be anything.")
    if not timestamp and not name:
        yield SectionProblem((), "needs timestamp or id: else a captured request could be sent again.")
    if timestamp.get("header") and "{timestamp}" not in signed:
        yield SectionProblem(("timestamp",), "is not signed: put {timestamp} into signed.")
    for key, where in (("timestamp", timestamp), ("id", name)):
        if where and bool(where.get("header")) == bool(where.get("body")):
            yield SectionProblem((key,), "needs either header or body: the name of a header, or a path in the body.")
        if f"{{{key}}}" in signed and not where.get("header"):
            yield SectionProblem(("signed",), f"has {{{key}}}: say in which header it is with {key}: {{header: ...}}.")
        try:
            read_path(where.get("body") or "x")
        except InvalidJob as error:
            yield SectionProblem((key, "body"), str(error))


def secrets_of(webhook: Mapping[str, Any]) -> list[str]:
    """The secrets of a webhook; several while one is replaced by another."""
    secret = webhook["secret"]
    return [secret] if isinstance(secret, str) else list(secret)


def settled_section(section: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The section as it is stored: references stay as they are written, files from anywhere."""
    kept = {key: value for key, value in section.items() if value is not None}
    if "secret" in kept:
        kept["secret"] = [absolute(secret, folder) for secret in secrets_of(kept)]
    return kept


def overridden(payload: dict[str, Any], untrusted: Mapping[str, Any]) -> dict[str, Any]:
    """The payload of a run with what holds instead where it is fed by others."""
    runner = {key: untrusted[key] for key in RUNNER_LIMITS if key in untrusted}
    own = {key: untrusted[key] for key in ("session", "deliver") if key in untrusted}
    if "chat" in payload:
        own.pop("deliver", None)  # a person who is paired is answered
    if "tools" in runner:
        runner["only_tools"] = True
    return {**payload, "runner": {**payload["runner"], **runner}, **own}
