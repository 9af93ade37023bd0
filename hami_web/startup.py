"""How a role that must not start says why: one line in the configured format, and a status.

The kubelet starts it anew, with growing pauses, until the cause is gone. What may come back by
itself (the API server, the database, the queue) ends no role: it is told at ``/readyz``.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Final

from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand

from hami_web.core.faults import Fault, line
from hami_web.environment import Refused
from hami_web.logs import JsonFormatter, role_of

logger = logging.getLogger(__name__)

STATUS: Final = 2
"""Of a process that ended since it cannot be used as it is configured; the agent's is the same."""
OWN_CHECKS: Final = "hami"
"""Tag of our own checks, which every role runs at its start; Django's take longer and are CI's."""
_BY_CHECK: Final = {
    "hami.E001": Fault.POLICY,
    "hami.E002": Fault.CERTIFICATE,
    "hami.E003": Fault.SIGNING_KEYS,
    "hami.E010": Fault.POLICY,
}


class RoleCommand(BaseCommand):
    """A role of the control plane: what its settings lack is told in a line, never a traceback."""

    requires_system_checks = []
    checks_settings: ClassVar[bool] = True
    """Whether our checks are run before; a command that mends what they find runs without."""

    def execute(self, *arguments: Any, **options: Any) -> str | None:
        """Run; SystemExit with :data:`STATUS` for a fault of the configuration."""
        if self.checks_settings:
            _check_settings()
        try:
            return super().execute(*arguments, **options)
        except ImproperlyConfigured as error:
            logger.critical("%s", line(fault_of(error), error))
            sys.exit(STATUS)


def _check_settings() -> None:
    """SystemExit after a line for each check that fails."""
    serious = [found for found in run_checks(tags=[OWN_CHECKS]) if found.is_serious()]
    for found in serious:
        logger.critical("%s", line(_BY_CHECK.get(str(found.id), Fault.SETTING), found.msg))
    if serious:
        sys.exit(STATUS)


def require_cluster(kubeconfig: Path | None) -> None:
    """Raise :class:`Refused` where nothing says how the API server is reached."""
    # Only roles wait for the Kubernetes client: it takes a second to import.
    from hami_web.cluster.client import OfficialConnection  # noqa: PLC0415
    from hami_web.cluster.errors import InvalidConfiguration  # noqa: PLC0415

    try:
        OfficialConnection(kubeconfig).close()
    except InvalidConfiguration as error:
        raise Refused(Fault.KUBERNETES_CONFIG, f"HAMI_KUBECONFIG: {error}") from error


def settings_or_exit(load: Callable[[], object]) -> None:
    """Read the settings; SystemExit with :data:`STATUS` after a line about what is wrong."""
    try:
        load()
    except ImproperlyConfigured as error:
        # Logging is configured by the settings, which there are none of.
        record = logging.LogRecord(
            __name__, logging.CRITICAL, __file__, 0, line(fault_of(error), error), (), None
        )
        as_json = os.environ.get("HAMI_LOG_FORMAT", "").strip().lower() == "json"
        text = JsonFormatter(role_of(sys.argv)).format(record) if as_json else record.getMessage()
        sys.stderr.write(f"{text}\n")
        sys.exit(STATUS)


def fault_of(error: ImproperlyConfigured) -> Fault:
    """The word for an error of the configuration."""
    return error.fault if isinstance(error, Refused) else Fault.SETTING
