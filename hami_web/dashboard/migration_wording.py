"""Words for checks, nodes and findings of a migration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from hami_web.migration.models import Readiness, RunState
from hami_web.migration.severity import Severity

_RUNS: Final[Mapping[str, Promise]] = {
    RunState.REQUESTED: _("waits for the worker"),
    RunState.RUNNING: _("is looking"),
    RunState.FINISHED: _("finished"),
    RunState.FAILED: _("failed"),
    RunState.CANCELLED: _("cancelled"),
}
_NODES: Final[Mapping[str, Promise]] = {
    Readiness.READY: _("ready"),
    Readiness.NOT_READY: _("not ready"),
    Readiness.UNKNOWN: _("not known"),
}
_SEVERITIES: Final[Mapping[str, Promise]] = {
    Severity.BLOCKER: _("blocker"),
    Severity.WARNING: _("warning"),
    Severity.NOTE: _("note"),
}


def state_of_run(state: str) -> str:
    """How far a check is."""
    return str(_RUNS[state])


def readiness_word(readiness: str) -> str:
    """What a check says of a node."""
    return str(_NODES[readiness])


def severity_word(severity: str) -> str:
    """How grave a finding is."""
    return str(_SEVERITIES[severity])
