"""The README's program runs as printed, and prints what is printed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def test_the_readmes_program_prints_what_it_says(tmp_path: Path) -> None:
    [program] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    [promised] = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    pattern = re.escape(promised).replace(re.escape("..."), ".*")
    assert re.fullmatch(pattern, result.stdout), result.stdout


def test_the_readmes_links_lead_somewhere() -> None:
    root = Path(__file__).parent.parent
    for target in re.findall(r"\]\(([^)#]+)", README):
        assert (root / target).exists(), target
