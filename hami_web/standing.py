"""What a role relies on, looked at every few seconds: told once in a line, and at ``/readyz``."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Final

logger = logging.getLogger(__name__)

LOOK_S: Final = 1.0


class Standing:
    """Asks ``look`` now and then; ``problem`` is its newest answer, a line or an empty text."""

    def __init__(self, name: str, look: Callable[[], str], *, every_s: float = LOOK_S) -> None:
        """``look`` is called on a thread of its own, and never at the same time twice."""
        self.problem = f"{name} was not looked at yet"
        self._first = self.problem
        self._name = name
        self._look = look
        self._every_s = every_s
        self._stopped = threading.Event()
        self._good = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()
        self._good.set()
        if self._thread.ident is not None:
            self._thread.join(5)

    def wait(self) -> bool:
        """Until it was good once: True; False when stopped before."""
        self._good.wait()
        return not self._stopped.is_set()

    @property
    def was_good(self) -> bool:
        """Whether it was good once."""
        return self._good.is_set()

    def look(self) -> None:
        """Look once, and tell what changed."""
        problem = self._look()
        if problem and problem != self.problem:
            logger.error("%s; looked at again until it is mended", problem)
        elif not problem and self.problem not in ("", self._first):
            logger.info("%s: mended", self._name)
        self.problem = problem
        if not problem:
            self._good.set()

    def _run(self) -> None:
        while True:
            try:
                self.look()
            except Exception:
                logger.exception("looking at %s", self._name)
            if self._stopped.wait(self._every_s):
                return


def first_problem(standings: Iterable[Standing]) -> str:
    """The first that is wrong, or an empty text."""
    return next((found.problem for found in standings if found.problem), "")
