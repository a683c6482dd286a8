"""Every page: complete without script, safe in any text, and with buttons for those alone who may use them."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

pytestmark = pytest.mark.promise("X28")

PAGES = (
    "/",
    "/jobs",
    "/jobs/hello",
    "/runs",
    "/agents",
    "/workflows",
    "/deliveries",
    "/monitors",
    "/alerts",
    "/nodes",
    "/events",
    "/more",
    "/jobs/new",
    "/jobs/hello/edit",
    "/find?q=hel",
    "/simulate?for=2h",
    "/jobs?q=nothing-like-it",
    "/?span=week&view=table",
)
FOR_OPERATORS = ("/jobs/new", "/jobs/hello/edit", "/simulate?for=2h")
VERBS = (
    "Run now",
    "Pause",
    "Resume",
    "Approve",
    "Reject",
    "Cancel",
    "Retry",
    "Acknowledge",
    "Send again",
    "Try once",
    "Send all again",
    "Undo",
    "Delete",
    "Drain",
    "Wake",
    "Reset",
    "Skip",
    "Sign out",
    "Filter",
    "It ",
    "select all",
    "Hold",
    "Theme",
    "Save",
    "Add",
    "Follow",
    "Next error",
    "Send event",
    "Simulate",
)
HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(2)>\u202eevil\x1b[31m'


class Reader(HTMLParser):
    """What a page is made of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.buttons: list[str] = []
        self._in_button = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "button":
            self.buttons.append("")
            self._in_button = True

    def handle_endtag(self, tag):
        self._in_button = self._in_button and tag != "button"

    def handle_data(self, data):
        if self._in_button:
            self.buttons[-1] += data

    def count(self, tag):
        return sum(name == tag for name, _ in self.tags)


@pytest.fixture(scope="module", autouse=True)
def _something_to_see(server):
    for argv in (
        ("add", "hello", "--every", "1h", "--", "echo", "hi"),
        ("add", "broken", "--every", "1h", "--", "false"),
        ("run", "hello", "--wait"),
        ("run", "broken", "--wait"),
    ):
        server.terminal.ask(*argv)


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_whole_without_script(visitor, path):
    answer = visitor("admin").get(path)
    assert answer.status_code == 200
    page = Reader(answer.text)
    assert [page.count(tag) for tag in ("h1", "main", "nav")] == [1, 1, 1]
    assert ("html", {"lang": "en"}) in page.tags
    assert re.search(r"<title>[●○◆■◷▲?] ", answer.text)
    assert "data-twin" in answer.text
    assert not any(
        "style" in attributes or any(name.startswith("on") for name in attributes) for _, attributes in page.tags
    )
    assert all("src" in attributes for tag, attributes in page.tags if tag == "script")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


@pytest.mark.parametrize("path", [path for path in PAGES if path not in FOR_OPERATORS])
def test_a_viewer_sees_no_button_that_changes_anything(visitor, path):
    buttons = Reader(visitor("viewer").get(path).text).buttons
    assert {button.strip() for button in buttons} <= {
        "Sign out",
        "Hold",
        "Theme: System",
        "Theme: Light",
        "Theme: Dark",
        "Follow",
        "Next error",
    }


@pytest.mark.parametrize("path", PAGES)
def test_buttons_begin_with_their_verb(visitor, path):
    buttons = Reader(visitor("admin").get(path).text).buttons
    assert [button for button in buttons if not button.strip().startswith(VERBS)] == []


@pytest.mark.parametrize("path", PAGES)
def test_a_page_has_its_regions_under_addresses_of_their_own(visitor, path):
    person = visitor("operator")
    regions = re.findall(r'data-region="([^"]+)"', person.get(path).text)
    for address in regions:
        answer = person.get(address.replace("&amp;", "&"))
        assert answer.status_code == 200, address
        again = person.get(address.replace("&amp;", "&"), **{"If-None-Match": answer.headers["etag"]})
        assert again.status_code in (200, 304)


def test_a_name_that_is_not_there_gets_a_page_that_says_so(visitor):
    answer = visitor("viewer").get("/jobs/helo")
    assert answer.status_code == 404
    assert "hello" in answer.text


def test_text_from_outside_is_text(server, visitor):
    admin = visitor("admin")
    server.terminal.ask("add", "loud", "--every", "1h", "--", "sh", "-c", f"printf '%s' '{HOSTILE}'; exit 3")
    server.terminal.ask("run", "loud", "--wait")
    admin.client.post("/api/jobs/loud/pause", json={"note": HOSTILE})
    run = admin.client.get("/api/runs?job=loud", headers={"Accept": "application/json"}).json()["items"][0]["id"]
    for path in ("/", "/jobs", "/jobs/loud", "/runs", f"/runs/{run}"):
        text = admin.get(path).text
        page = Reader(text)
        assert "<script>alert" not in text, path
        assert not any(tag == "img" for tag, _ in page.tags), path
        assert "\u202e" not in text, path
        assert "\x1b" not in text, path


def test_static_files_are_kept_for_good_under_the_name_of_their_content(visitor):
    person = visitor("viewer")
    names = re.findall(r"/static/[\w.-]+", person.get("/").text)
    assert len(set(names)) == 4
    for name in names:
        answer = person.get(name)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
    assert person.get("/static/other.css").status_code == 404


@pytest.mark.parametrize("zone", ["Mars/Base", "../../etc/passwd", "x" * 3000, "", "%00", "Europe%2FBerlin%0d%0aX: y"])
def test_a_zone_that_is_not_known_changes_nothing(visitor, zone):
    person = visitor("viewer")
    usual = re.search(r'data-zone="([^"]+)"', person.get("/").text)[1]
    person.client.cookies["wakeful-zone"] = zone
    answer = person.get("/")
    assert answer.status_code == 200
    assert re.search(r'data-zone="([^"]+)"', answer.text)[1] == usual


@pytest.mark.parametrize("text", ["$(reboot)", "`reboot`", "a; reboot", "it's", "--all", "a\nreboot"])
def test_the_command_for_a_page_quotes_what_the_address_gives(visitor, text):
    import html
    import shlex

    person = visitor("viewer")
    for path, name in (("/jobs", "q"), ("/jobs", "agent"), ("/deliveries", "connector")):
        shown = person.client.get(path, params={name: text}).text
        words = shlex.split(html.unescape(re.search(r"<code data-twin>(.*?)</code>", shown, re.DOTALL)[1]))
        assert words[0] == "wakeful"
        assert "\n" in text or words[-1] == text
        assert not {"reboot", "$(reboot)", "`reboot`"} & set(words) - {text}


def test_regions_are_not_kept_by_the_browser(visitor):
    person = visitor("viewer")
    answer = person.get("/ui/now/needs")
    assert answer.headers["cache-control"] == "no-store"
    again = person.get("/ui/now/needs", **{"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.headers["cache-control"]) == (304, "no-store")
