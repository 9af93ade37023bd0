"""A trouble that stays is told once, however often something is tried again."""

from __future__ import annotations

import logging


class Trouble:
    """A line that is logged when it is new, and not with every try."""

    def __init__(self, log: logging.Logger, text: str) -> None:
        """``text`` has one place, for what is wrong."""
        self._log = log
        self._text = text
        self._told = ""

    def tell(self, error: object) -> None:
        """Something is wrong; as a warning, if it is not what was told last."""
        found = " ".join(str(error).split())
        if found != self._told:
            self._log.warning(self._text, found)
        self._told = found

    def over(self) -> None:
        """It works; the next trouble is told even if it is the same."""
        self._told = ""
