"""How the tests of one run are spread over processes: ``pytest -n``.

Each file is one piece of work, so that what a module sets up is set up once; tests that share an
``xdist_group`` (one machine holds one real Kubernetes) are one piece too. Long pieces begin first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdist.scheduler import LoadGroupScheduling

if TYPE_CHECKING:
    import pytest


class FilesAndGroups(LoadGroupScheduling):
    """The group where a test names one, otherwise its file."""

    def _split_scope(self, nodeid: str) -> str:
        group: str = super()._split_scope(nodeid)
        return group if group != nodeid else _file(nodeid)


def long_first(items: list[pytest.Item]) -> None:
    """Bring files with a long test to the front: none is left for one process at the end.

    The tests on a real Kubernetes, which take longest, bring themselves before them.
    """
    marks = ("slow", "timeout")
    long = {_file(item.nodeid) for item in items if any(map(item.get_closest_marker, marks))}
    items.sort(key=lambda item: _file(item.nodeid) not in long)


def _file(nodeid: str) -> str:
    return nodeid.split("::", 1)[0]
