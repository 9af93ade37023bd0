"""What an examination says, before it is stored."""

from __future__ import annotations

from dataclasses import dataclass

from hami_web.migration.codes import MEANINGS, FindingCode
from hami_web.migration.severity import Severity


@dataclass(frozen=True, slots=True)
class FoundFinding:
    """One finding; ``node`` is empty for what concerns the whole cluster.

    ``subject`` is the object that it is about, ``evidence`` what was seen of it, in plain facts.
    """

    code: FindingCode
    subject: str
    evidence: str
    node: str = ""

    @property
    def severity(self) -> Severity:
        return MEANINGS[self.code].severity
