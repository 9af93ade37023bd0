"""The cluster's policies, read again while the extender runs; the last good ones stay in force."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, cast

import yaml

from hami_web.core.errors import CoreError
from hami_web.core.policy import SchedulingPolicy, parse_scheduling_policy
from hami_web.scheduling.admission_policy import AdmissionPolicy, parse_admission_policy

logger = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 2.0

Apply = Callable[[SchedulingPolicy, AdmissionPolicy], None]


class PolicyWatch:
    """Looks at the file and applies what changed; ``problem`` says why the newest text is not used.

    The text that the process began with was checked before; it is not applied again.
    """

    def __init__(self, path: Path, apply: Apply) -> None:
        self.problem = ""
        self._path = path
        self._apply = apply
        self._text = self._read() or ""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="policy", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(5)

    def look(self) -> None:
        """Read the file; apply both sections if it changed and both are good, else neither."""
        text = self._read()
        if text is None or text == self._text:
            return
        self._text = text
        try:
            scheduling, admission = _parsed(text)
        except (yaml.YAMLError, CoreError) as error:
            self._complain(str(error))
            return
        self.problem = ""
        self._apply(scheduling, admission)
        logger.info("%s: the policies were read anew", self._path)

    def _read(self) -> str | None:
        try:
            return self._path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            self._complain(str(error))
            return None

    def _complain(self, problem: str) -> None:
        if problem != self.problem:
            logger.error("%s: the policies read before stay in force: %s", self._path, problem)
        self.problem = problem

    def _run(self) -> None:
        while not self._stopped.wait(LOOK_EVERY_S):
            try:
                self.look()
            except Exception:
                logger.exception("looking at the policies")


def _parsed(text: str) -> tuple[SchedulingPolicy, AdmissionPolicy]:
    document = yaml.safe_load(text)
    if not isinstance(document, dict):
        raise yaml.YAMLError("allowed: a YAML mapping")
    sections = cast(dict[object, object], document)
    # An empty section is an absent one, as at the start.
    return (
        parse_scheduling_policy(sections.get("scheduling") or {}),
        parse_admission_policy(sections.get("admission") or {}),
    )
