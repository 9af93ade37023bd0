"""What stands for something that is there but is not shown."""

from __future__ import annotations

from typing import Final

UNAVAILABLE: Final = "unavailable"
"""In place of a name that is not for the reader."""
