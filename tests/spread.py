"""How the tests of one run are spread over processes: ``pytest -n``.

Each file is one piece of work, so that what a module sets up is set up once; all tests on a real
Kubernetes are one piece, as one machine holds one. Those in a browser belong to it: Chromium gives
up what it loads (ERR_NETWORK_CHANGED) when a cluster's containers change the machine's interfaces.
Long pieces begin first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    import pytest

KUBERNETES: Final = "kubernetes"
_ON_KUBERNETES: Final = ("tests/cluster/", "tests/deploy/test_release.py")
IN_A_BROWSER: Final = frozenset(
    f"tests/dashboard/test_{name}.py"
    for name in (
        *("axe", "browser", "downloads", "every_page", "large_map", "reading", "settings_page"),
        *("sign_in_pages", "sub_path"),
    )
)
_ON_BOTH: Final = "tests/simulator/contract/"
"""Its tests run on the simulated API server and, with ``real`` among their parameters, on a real
one."""


class FilesAndKubernetes(LoadScopeScheduling):
    """By the names of tests: the marks of xdist's groups are lost with pytest 9.2."""

    def _split_scope(self, nodeid: str) -> str:
        return piece_of(nodeid)


def piece_of(nodeid: str) -> str:
    """Which piece of work a test belongs to."""
    path, _separator, name = nodeid.partition("::")
    real = "real" in name.partition("[")[2].rstrip("]").split("-")
    if path.startswith(_ON_KUBERNETES) or (path.startswith(_ON_BOTH) and real):
        return KUBERNETES
    if path in IN_A_BROWSER:
        return KUBERNETES
    return path


def long_first(items: list[pytest.Item]) -> None:
    """Bring files with a long test to the front: none is left for one process at the end.

    Those on a real Kubernetes, which take longest, come first, folder by folder, so that each
    folder's cluster is set up once.
    """
    marks = ("slow", "timeout")
    pieces = {item.nodeid: piece_of(item.nodeid) for item in items}
    long = {pieces[item.nodeid] for item in items if any(map(item.get_closest_marker, marks))}

    def place(item: pytest.Item) -> tuple[int, str]:
        piece = pieces[item.nodeid]
        if piece == KUBERNETES:
            return 0, item.nodeid.partition("::")[0].rpartition("/")[0]
        return (1 if piece in long else 2), ""

    items.sort(key=place)
