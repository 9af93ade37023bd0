"""The one live map of this process; the web role installs it before it serves."""

from __future__ import annotations

from hami_web.dashboard.live import LiveMap

_installed: list[LiveMap] = []


def install_map(live: LiveMap) -> None:
    """Make a map the process's own, in place of an earlier one."""
    _installed[:] = [live]


def installed_map() -> LiveMap:
    """The map to show. Raises RuntimeError in a process that serves no dashboard."""
    if not _installed:
        raise RuntimeError("no live map in this process: start the dashboard with manage.py web")
    return _installed[0]
