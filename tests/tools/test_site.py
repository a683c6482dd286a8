"""The documentation as a site: every page is in the navigation, every link leads somewhere, search knows all."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin

import pytest

from tools.site import INDEX, ROOT, build, navigation

LINK = re.compile(r"<a\b[^>]*?\bhref=\"?([^\"\s>]+)")
LOADED = re.compile(r"<(?:script|img|link|iframe)\b[^>]*?\b(?:src|href)=\"?([^\"\s>]+)")
ANCHOR = re.compile(r"\b(?:id|name)=\"?([^\"\s>]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return build(tmp_path_factory.mktemp("site") / "site")


def pages(site):
    return {page: page.read_text(encoding="utf-8") for page in sorted(site.rglob("*.html")) if page.name != "404.html"}


def target(site, page, link):
    """The file that a link on a page leads to, and the place in it."""
    base = "/" + str(page.parent.relative_to(site)).strip(".") + "/"
    path, place = urldefrag(urljoin(base.replace("//", "/"), unescape(link)))
    file = site / unquote(path).lstrip("/")
    return (file / "index.html" if file.is_dir() else file), place


def test_every_guide_is_a_page_and_in_the_navigation(site):
    listed = {page.path for group in navigation(INDEX.read_text(encoding="utf-8")).values() for page in group}
    guides = {str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md") if path != INDEX}
    assert guides <= listed
    assert [name for name in listed if not (site / Path(name).with_suffix("") / "index.html").exists()] == []


def test_every_link_on_the_site_leads_somewhere(site):
    found, broken = pages(site), []
    for page, text in found.items():
        for link in LINK.findall(text):
            if re.match(r"[a-z]+:", link):
                continue
            file, place = target(site, page, link)
            there = found.get(file, "")
            if not file.is_file() or (
                place and there and place not in {unescape(name) for name in ANCHOR.findall(there)}
            ):
                broken.append((str(page.relative_to(site)), link))
    assert len(found) > 30
    assert broken == []


def test_nothing_on_the_site_is_loaded_from_elsewhere(site):
    outside = {
        link for text in pages(site).values() for link in LOADED.findall(text) if re.match(r"(https?:)?//", link)
    }
    assert outside == set()


def test_search_knows_every_guide(site):
    known = json.dumps(json.loads((site / "search.json").read_text(encoding="utf-8")))
    assert [
        path.stem for path in (ROOT / "docs").glob("*.md") if path != INDEX and f"docs/{path.stem}/" not in known
    ] == []
    assert "Ten million schedules" in known
