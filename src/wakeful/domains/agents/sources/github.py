"""The source `github`: open issues with a label, the oldest first; pull requests are left out.

Labels and assignees cannot be compared and set, so an issue is claimed by a comment that carries our nonce: of all live
claims the one with the lowest comment id counts, and the others are withdrawn. A claim says until when it holds: one
whose maker has died ends by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from wakeful.clock import sleep
from wakeful.domains.agents.sources.github_api import Connection, GitHub
from wakeful.domains.agents.sources.source import (
    Claimed,
    InHand,
    ItemHeld,
    ItemSettled,
    Lost,
    Missing,
    Note,
    SourceItem,
    SourceListing,
)
from wakeful.triggers.moments import iso, to_ms

LONGEST_CLAIM_MS = 24 * 3_600_000
"""The longest claim that counts: a comment by another user must not keep an issue from us forever."""
RECENT_MS = 7 * 24 * 3_600_000  # comments that are looked at; an issue may have thousands
LONGEST_COMMENT = 60_000
LONGEST_TITLE, LONGEST_BODY = 1_000, 100_000
GONE = (301, 404, 410)
MAY_WRITE = (None, "OWNER", "MEMBER", "COLLABORATOR")
_CLAIM = re.compile(r"<!-- wakeful-claim ([A-Za-z0-9]+) until (\S+) -->")


class GithubClaim(NamedTuple):
    """A claim, as a comment has it."""

    comment: int
    nonce: str
    until: int


class GitHubSource:
    """The issues of one repository that carry a label."""

    def __init__(self, api: GitHub, repo: str, label: str, now: Callable[[], int], *, close: bool = False) -> None:
        """`close`: an issue that is done is closed, too."""
        self._api = api
        self._repo = repo
        self._label = label
        self._now = now
        self._close = close

    @property
    def key(self) -> str:
        return f"github:{self._repo}"

    async def waiting(self, most: int) -> SourceListing:
        wanted = {"labels": self._label, "state": "open", "sort": "created", "direction": "asc", "per_page": 100}
        async with self._api.connected() as api:
            found, is_whole = await api.every(f"/repos/{self._repo}/issues?{urlencode(wanted)}", keep=True)
        issues = [self._found(issue) for issue in found if "pull_request" not in issue and "number" in issue]
        return SourceListing(issues[:most], is_whole and len(issues) <= most)

    def is_back(self, found: SourceItem, mark: Mapping[str, Any]) -> bool:
        """Changed after our report, and still listed: the label was put back."""
        return mark.get("reported") is None or str(found.version) > str(mark["reported"])

    async def claim(self, item: InHand, note: Note) -> Claimed:
        async with self._api.connected() as api:
            issue = await api.ask("GET", self._at(item), expected=GONE)
            if issue.status in GONE or not self._waits(issue.body, item.mark):
                return Missing()
            comments = await self._comments(api, item)
            if _says(comments, _report_mark(item.nonce)):
                return ItemSettled("done")
            claims = self._claims(comments)
            ours = next((claim for claim in claims if claim.nonce == item.nonce), None)
            if claims and claims[0] is not ours:
                if ours is not None:
                    await self._withdraw(api, ours.comment)
                return Lost()
            if ours is not None:
                await note({"comment": ours.comment})
                await api.ask("PATCH", self._comment(ours.comment), {"body": self._claim_text(item)})
            elif not await self._claim(api, item, note):
                return Lost()
        found = self._found(issue.body)
        return ItemHeld(found.title, found.body)

    async def release(self, item: InHand, note: Note) -> None:  # noqa: ARG002 - the comment itself names the claimant
        async with self._api.connected() as api:
            await self._withdraw(api, item.mark.get("comment"))

    async def report(self, item: InHand, status: str, text: str) -> Mapping[str, Any]:
        at = self._at(item)
        async with self._api.connected() as api:
            if (await api.ask("GET", at, expected=GONE)).status in GONE:
                return {}
            said = _says(await self._comments(api, item), _report_mark(item.nonce))
            if said is None:
                said = (await api.ask("POST", f"{at}/comments", {"body": _report_text(item, status, text)})).body
            await api.ask("DELETE", f"{at}/labels/{quote(self._label, safe='')}", expected=GONE)
            if self._close and status == "done":
                await api.ask("PATCH", at, {"state": "closed", "state_reason": "completed"}, expected=GONE)
            await self._withdraw(api, item.mark.get("comment"))
        return {"reported": said.get("created_at")} if isinstance(said, dict) else {}

    # -- inside -------------------------------------------------------------------------------------------------------

    async def _claim(self, api: Connection, item: InHand, note: Note) -> bool:
        """Write our claim, and see whether it is the first."""
        made = await api.ask("POST", f"{self._at(item)}/comments", {"body": self._claim_text(item)})
        ours = int(made.body["id"])
        await note({"comment": ours})
        await sleep(self._api.pause_s)  # the claim of another may be on its way
        first = next(iter(self._claims(await self._comments(api, item))), None)
        if first is None or first.comment >= ours:
            return True
        await self._withdraw(api, ours)
        return False

    async def _comments(self, api: Connection, item: InHand) -> list[dict[str, Any]]:
        lately = {"since": iso(self._now() - RECENT_MS), "per_page": 100}
        return (await api.every(f"{self._at(item)}/comments?{urlencode(lately)}"))[0]

    async def _withdraw(self, api: Connection, comment: int | None) -> None:
        if comment is not None:
            await api.ask("DELETE", self._comment(comment), expected=GONE)

    def _claims(self, comments: list[dict[str, Any]]) -> list[GithubClaim]:
        """Live claims of users with write access, the lowest id first."""
        found = (claim for comment in comments if _may_write(comment) and (claim := read_claim(comment)) is not None)
        return sorted(claim for claim in found if claim.until > self._now())

    def _waits(self, issue: Any, mark: Mapping[str, Any]) -> bool:
        if not isinstance(issue, dict) or issue.get("state", "open") != "open" or "pull_request" in issue:
            return False
        names = {one.get("name") if isinstance(one, dict) else one for one in issue.get("labels", ())}
        return self._label in names or bool(mark.get("again"))

    def _found(self, issue: dict[str, Any]) -> SourceItem:
        title, body = str(issue.get("title") or "")[:LONGEST_TITLE], issue.get("body")
        number = issue["number"]
        text = None if body is None else str(body)[:LONGEST_BODY]
        return SourceItem(f"{self._repo}#{number}", title.strip() or f"Issue {number}", text, issue.get("updated_at"))

    def _at(self, item: InHand) -> str:
        return f"/repos/{self._repo}/issues/{item.external_id.rpartition('#')[2]}"

    def _comment(self, number: int) -> str:
        return f"/repos/{self._repo}/issues/comments/{number}"

    def _claim_text(self, item: InHand) -> str:
        until = iso(self._now() + min(item.lease_ms, LONGEST_CLAIM_MS))
        return f"<!-- wakeful-claim {item.nonce} until {until} -->\nThe agent {item.agent} is working on this issue."


def read_claim(comment: Mapping[str, Any]) -> GithubClaim | None:
    """The claim that a comment begins with."""
    match = _CLAIM.match(str(comment.get("body") or ""))
    if match is None or "id" not in comment:
        return None
    until = _moment(match[2])
    made = _moment(str(comment.get("created_at")))
    if until is None:
        return None
    return GithubClaim(int(comment["id"]), match[1], until if made is None else min(until, made + LONGEST_CLAIM_MS))


def _may_write(comment: Mapping[str, Any]) -> bool:
    """Whether its author may work on issues: other users' comments claim nothing."""
    user = comment.get("user")
    is_bot = isinstance(user, dict) and user.get("type") == "Bot"
    return is_bot or comment.get("author_association") in MAY_WRITE


def _says(comments: list[dict[str, Any]], mark: str) -> dict[str, Any] | None:
    """Our report. Anyone can read our nonce in the claim, so comments by other users do not count."""
    return next((one for one in comments if _may_write(one) and str(one.get("body") or "").startswith(mark)), None)


def _report_mark(nonce: str) -> str:
    return f"<!-- wakeful-report {nonce} -->"


def _report_text(item: InHand, status: str, text: str) -> str:
    head = f"The agent {item.agent} worked on this issue." if status == "done" else f"The agent {item.agent} gave up."
    return f"{_report_mark(item.nonce)}\n{head}\n\n{text}"[:LONGEST_COMMENT]


def _moment(text: str) -> int | None:
    try:
        return to_ms(datetime.fromisoformat(text))
    except (ValueError, TypeError):
        return None
