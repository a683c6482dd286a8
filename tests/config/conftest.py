"""A place to write a file."""

from __future__ import annotations

import pytest


@pytest.fixture
def write(tmp_path):
    """Write the file; its path."""

    def write(text, name="wakeful.yaml"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return write
