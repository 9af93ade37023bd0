"""Who answers: the web service, or the annotations themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from hami_web.kubectl import shapes


class WhatIfQuestion(Struct, kw_only=True, omit_defaults=True):
    """Equal Pods of one container; sizes in MiB and percent."""

    devices: int = 1
    profile: str | None = None
    memory_mib: int | None = None
    memory_percent: int | None = None
    cores: int | None = None
    count: int = 1


class Source(Protocol):
    """Answers of one moment. Raises CommandFailed, or Unserved where nobody answers."""

    @property
    def note(self) -> str:
        """Where the answers come from and what is not known there; empty for the web service."""
        ...

    def nodes(self) -> Sequence[shapes.Node]: ...

    def devices(self) -> Sequence[shapes.Device]: ...

    def reservations(self, namespace: str | None) -> Sequence[shapes.Reservation]: ...

    def cluster_map(self) -> shapes.ClusterMap: ...

    def why(self, namespace: str, pod: str) -> Sequence[shapes.Why]: ...

    def what_if(self, question: WhatIfQuestion) -> shapes.WhatIf: ...

    def drain_plan(self, profile: str, count: int) -> shapes.DrainPlan: ...


class CommandFailed(Exception):
    """The question could not be answered: exit code 2."""


class Unserved(CommandFailed):
    """The web service does not answer."""
