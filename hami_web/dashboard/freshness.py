"""How much the dashboard may trust what it shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

STALE_AFTER_S: Final = 90.0
"""An API server sends a bookmark about once a minute; a longer silence is no longer normal."""
STALE_AFTER_ERROR_S: Final = 10.0
"""With a failure known, the silence need not be long."""


@dataclass(frozen=True, slots=True)
class Freshness:
    """Seconds since the API server was last heard (None: never), and what failed since, if so."""

    age_s: float | None
    error: str = ""

    @property
    def is_stale(self) -> bool:
        """The picture may have become wrong without anyone telling us."""
        if self.age_s is None:
            return True
        return self.age_s > (STALE_AFTER_ERROR_S if self.error else STALE_AFTER_S)

    @property
    def age_words(self) -> str:
        """Whole seconds, or a dash before the first answer."""
        return "\N{EN DASH}" if self.age_s is None else str(round(self.age_s))
