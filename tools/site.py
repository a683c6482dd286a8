"""Builds the documentation as a site, with search, in build/site/html.

python -m tools.site           # also: make site

The pages stay where they are in the repository, so that their links hold on the site as well; the README is its first
page, and docs/README.md, which lists the others in the order in which they are read, is the navigation. Nothing on the
site comes from elsewhere.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from wakeful.version import __version__

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "build" / "site"
FOLDERS = ("docs", "examples", "requirements")
FILES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE")
INDEX = ROOT / "docs" / "README.md"
GROUP = re.compile(r"^## (?P<group>.+)\n(?P<pages>(?:(?!## ).*\n)*)", re.MULTILINE)
LINK = re.compile(r"\[(?P<title>[^\]]+)\]\((?P<path>[^)#]+)\)")
LINK_TO_README = re.compile(r"\(((?:[\w.-]+/)*)README\.md(#[^)]*)?\)")
CONFIGURATION = """
[project]
site_name = "Wakeful"
site_description = "A durable scheduler for jobs, agents and workflows."
copyright = "Wakeful {version}"
docs_dir = "pages"
site_dir = "html"
use_directory_urls = true
nav = {nav}

[project.theme]
language = "en"
font = false
features = ["content.code.copy", "navigation.footer", "navigation.path", "navigation.sections", "navigation.top",
    "navigation.tracking", "search.highlight", "toc.follow"]

[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"
toggle.icon = "lucide/sun"
toggle.name = "Dark"

[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"
toggle.icon = "lucide/moon"
toggle.name = "Light"

[project.markdown_extensions]
attr_list = {{}}
tables = {{}}
toc.permalink = true
pymdownx.highlight.pygments_lang_class = true
pymdownx.inlinehilite = {{}}
pymdownx.superfences = {{}}
"""


class Page(NamedTuple):
    """An entry of the navigation: its title, and its file as seen from the README."""

    title: str
    path: str


def navigation(index: str) -> dict[str, list[Page]]:
    """The pages that the index lists below each heading."""
    return {
        row["group"]: [Page(link["title"], _from_the_root(link["path"])) for link in LINK.finditer(row["pages"])]
        for row in GROUP.finditer(index)
    }


def _from_the_root(path: str) -> str:
    return path.removeprefix("../") if path.startswith("../") else f"docs/{path}"


def lay_out(folder: Path) -> None:
    """The project's pages, and what they link to, as the site has them."""
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.db*", ".*"))
    for name in FILES:
        shutil.copy(ROOT / name, folder / name)
    shutil.copy(ROOT / "README.md", folder / "index.md")
    (folder / "docs" / "README.md").rename(folder / "docs" / "index.md")
    for page in sorted(folder.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        page.write_text(LINK_TO_README.sub(_index, text), encoding="utf-8")
    for example in sorted({path.parent for path in (folder / "examples").rglob("*") if path.is_file()}):
        _list_files(example)


def _index(link: re.Match[str]) -> str:
    """A link to a README, as the site has it: a folder's first page."""
    return f"({link[1]}index.md{link[2] or ''})"


def _list_files(folder: Path) -> None:
    """The page that a link to a folder leads to: what its README says, and its files with their contents."""
    readme = folder / "README.md"
    lines = [readme.read_text(encoding="utf-8") if readme.exists() else f"# {folder.name}", ""]
    readme.unlink(missing_ok=True)
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.suffix not in {".json", ".md"}:
            kind = path.suffix.removeprefix(".")
            lines += [f"## {path.name}", "", f"````{kind}", path.read_text(encoding="utf-8").rstrip(), "````", ""]
        elif path.is_file():
            lines += [f"- [{path.name}]({path.name})"]
    (folder / "index.md").write_text("\n".join(lines), encoding="utf-8")


def configuration() -> str:
    """What the generator is given."""
    groups = navigation(INDEX.read_text(encoding="utf-8"))
    entries: list[dict[str, object]] = [{"Wakeful": "index.md"}, {"All pages": "docs/index.md"}]
    entries += [
        {group: [{page.title[:1].upper() + page.title[1:]: page.path} for page in pages]}
        for group, pages in groups.items()
    ]
    # JSON of lists, texts and tables of one key is TOML but for its colons.
    return CONFIGURATION.format(version=__version__, nav=re.sub(r'": ', '" = ', json.dumps(entries)))


def build(folder: Path = SITE) -> Path:
    """The site, built anew in this folder; returns where its pages are."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "pages").mkdir(parents=True)
    lay_out(folder / "pages")
    (folder / "zensical.toml").write_text(configuration(), encoding="utf-8")
    command = [str(Path(sys.executable).with_name("zensical")), "build", "--strict", "--clean"]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, timeout=300)
    return folder / "html"


def main() -> int:
    """Build it and say how to look at it; the exit code."""
    print(f"The site is built. Look at it with: python3 -m http.server --bind 127.0.0.1 -d {build()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
