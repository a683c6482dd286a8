"""The scene of the kernel's tests."""

from __future__ import annotations

from tests.kernel.scene import scene

__all__ = ["scene"]
