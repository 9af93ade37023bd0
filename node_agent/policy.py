"""The cluster's device configuration, read again when its file changes."""

from __future__ import annotations

import logging
from pathlib import Path

import yaml

from hami_web.core.allowlist import ProfileAllowlist
from hami_web.core.device_config import parse_device_config
from hami_web.core.errors import InvalidField
from hami_web.core.faults import Fault, line

logger = logging.getLogger(__name__)


class DevicePolicy:
    """The newest good allowlist of a file; a bad new text never replaces a good old one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: str | None = None
        self._allowlist: ProfileAllowlist | None = None
        self.problem = ""

    def allowlist(self) -> ProfileAllowlist | None:
        """The allowlist, or None while there has been no good one; ``problem`` says why."""
        try:
            text = self._path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            self._complain(f"cannot read the device configuration {self._path}: {error}")
            return self._allowlist
        if text == self._read:
            return self._allowlist
        try:
            self._allowlist = parse_device_config(yaml.safe_load(text))
        except (yaml.YAMLError, InvalidField) as error:
            self._complain(f"device configuration {self._path}: {error}")
            return self._allowlist
        self._read = text
        self.problem = ""
        return self._allowlist

    def _complain(self, problem: str) -> None:
        problem = line(Fault.POLICY, problem)
        if problem != self.problem:
            kept = "the last good one stays in force" if self._allowlist else "no GPU is offered"
            logger.error("%s; %s", problem, kept)
        self.problem = problem
