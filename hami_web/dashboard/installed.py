"""What this process shows: the web role installs it before it serves."""

from __future__ import annotations

from collections.abc import Callable

from hami_web.dashboard.live import LiveMap

_installed: list[LiveMap] = []
_notices: list[Callable[[], list[str]]] = []
_problems: list[Callable[[], str]] = []


def install_map(live: LiveMap) -> None:
    """Make a map the process's own, in place of an earlier one."""
    _installed[:] = [live]


def installed_map() -> LiveMap:
    """The map to show. Raises RuntimeError in a process that serves no dashboard."""
    if not _installed:
        raise RuntimeError("no live map in this process: start the dashboard with manage.py web")
    return _installed[0]


def install_notices(source: Callable[[], list[str]]) -> None:
    """Make this the source of what does not work elsewhere, in place of an earlier one."""
    _notices[:] = [source]


def install_problem(source: Callable[[], str]) -> None:
    """Make this the source of why this process is not ready, in place of an earlier one."""
    _problems[:] = [source]


def problem() -> str:
    """Why this process cannot do its work, as a line, or an empty text."""
    return next((text for source in _problems if (text := source())), "")


def notices() -> list[str]:
    """What does not work elsewhere, in words."""
    return [text for source in _notices for text in source()]
