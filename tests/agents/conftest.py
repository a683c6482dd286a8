"""Session servers, and schedulers that talk to them."""

from __future__ import annotations

import pytest

from tests.agents.session_server import SessionServer
from tests.kernel.scene import scene

__all__ = ["scene"]


@pytest.fixture
def sessions():
    """A session server of this test's own."""
    with SessionServer() as server:
        yield server
