"""Sources of work where something is not as it should be: files of others, long answers, strange limits."""

from __future__ import annotations

import asyncio
import re
import socket
from datetime import datetime

import pytest

from tests.agents.github_server import FakeGitHub
from tests.agents.test_directory_source import Inbox, Noted, attempt
from tests.agents.test_github_source import HOUR_MS
from tests.agents.test_github_source import Noted as NotedIssue
from wakeful.clock import SystemClock
from wakeful.domains.agents.sources import github_api
from wakeful.domains.agents.sources.directory import DirectorySource
from wakeful.domains.agents.sources.github import GitHubSource
from wakeful.domains.agents.sources.github_api import GitHub, limited_until
from wakeful.domains.agents.sources.source import Lost, Missing, SourceFailed

pytestmark = pytest.mark.promise("D10")
NOW = 1_767_225_600_000


@pytest.fixture
def inbox(tmp_path):
    return Inbox(tmp_path / "inbox")


@pytest.fixture
def github():
    with FakeGitHub() as server:
        server.issue(1)
        yield server


@pytest.fixture
def source(github):
    api = GitHub(github.url, lambda: "s3cret", SystemClock().now, pause_s=0)
    return GitHubSource(api, "owner/name", "ready", SystemClock().now)


@pytest.mark.parametrize("step", ["report", "release"])
def test_a_file_that_another_works_on_is_not_moved(inbox, step):
    source = DirectorySource(str(inbox.path), inline=True)
    inbox.put("roof.md")
    (inbox.path / "new").rename(inbox.path / "doing")
    noted = Noted("ours")
    attempt(source.report(noted.item, "done", "") if step == "report" else source.release(noted.item, noted))
    assert inbox.files == {"doing": ["roof.md"]}


@pytest.mark.parametrize(("host", "answer"), [(None, Lost), (socket.gethostname(), Missing)])
def test_a_file_that_is_nowhere_may_be_seen_by_the_machine_that_claimed_it(inbox, host, answer):
    source = DirectorySource(str(inbox.path), inline=True)
    noted = Noted("ours")
    noted.mark |= {"there": True, "host": host}
    assert isinstance(attempt(source.claim(noted.item, noted)), answer)


def test_a_claim_is_made_for_a_day_at_most(github, source):
    noted = NotedIssue("ours")
    asyncio.run(source.claim(noted.item._replace(lease_ms=1000 * HOUR_MS), noted))
    until = datetime.fromisoformat(re.search(r"until (\S+) -->", github.said(1)[0])[1])
    assert until.timestamp() * 1000 <= SystemClock().now() + 24 * HOUR_MS


def test_a_list_goes_on_at_the_same_server_alone(github, source, monkeypatch):
    elsewhere = {"Link": '<http://127.0.0.1:1/repos/owner/name/issues?page=2>; rel="next"'}
    monkeypatch.setattr(github, "answer", lambda *_: (200, [], elsewhere))
    assert asyncio.run(source.waiting(10)) == ([], True)


def test_an_answer_is_read_up_to_a_bound(github, source, monkeypatch):
    monkeypatch.setattr(github_api, "MAX_ANSWER", 100)
    with pytest.raises(SourceFailed, match="longer than 100 bytes"):
        asyncio.run(source.waiting(10))


@pytest.mark.parametrize(
    ("left", "reset", "until"),
    [
        ("0", NOW // 1000 + 60, NOW + 60_000),
        ("0", NOW // 1000 - 60, NOW + 1_000),  # its clock is behind ours
        ("5", NOW // 1000 + 60, None),  # it is refused for another reason
    ],
)
def test_a_limit_that_is_used_up_ends_when_it_says(left, reset, until):
    headers = {"x-ratelimit-remaining": left, "x-ratelimit-reset": str(reset)}
    assert limited_until(403, headers, "", NOW) == until


def test_files_beyond_the_bound_a_link_and_a_name_too_long_are_no_items(inbox):
    source = DirectorySource(str(inbox.path), inline=True)
    for name in ("roof.md", "wall.md", f"{'x' * 198}.md"):
        inbox.put(name)
    (inbox.path / "new" / "link").symlink_to(inbox.path / "new" / "roof.md")
    few, every = (asyncio.run(source.waiting(most)) for most in (1, 2))
    assert ([found.external_id for found in few.found], few.is_whole) == (["roof.md"], False)
    assert ([found.external_id for found in every.found], every.is_whole) == (["roof.md", "wall.md"], True)


@pytest.mark.promise("X18")
@pytest.mark.parametrize("folder", ["new", "doing"])
def test_a_link_that_was_put_in_the_place_of_a_file_is_not_followed(inbox, tmp_path, folder):
    source = DirectorySource(str(inbox.path), inline=True)
    (tmp_path / "secret").write_text("PLANTED")
    (inbox.path / folder).mkdir(parents=True)
    (inbox.path / folder / "roof.md").symlink_to(tmp_path / "secret")
    noted = Noted("ours")
    if folder == "new":
        assert isinstance(attempt(source.claim(noted.item, noted)), Missing)
        return
    noted.mark |= {"there": True, "host": None}
    with pytest.raises(SourceFailed):
        asyncio.run(source.claim(noted.item, noted))
