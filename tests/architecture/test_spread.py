"""Tests on a real Kubernetes are one piece of work, whatever else is spread over processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spread import IN_A_BROWSER, KUBERNETES, piece_of

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("nodeid", "piece"),
    [
        ("tests/cluster/test_fire.py::test_a", KUBERNETES),
        ("tests/deploy/test_release.py::test_a", KUBERNETES),
        ("tests/simulator/contract/test_writes.py::test_a[real]", KUBERNETES),
        ("tests/simulator/contract/test_lists.py::test_a[real-2]", KUBERNETES),
        ("tests/simulator/contract/test_lists.py::test_a[simulated-2]", None),
        ("tests/dashboard/test_axe.py::test_a[light]", KUBERNETES),
        ("tests/core/test_request.py::test_a[real]", None),
        ("tests/deploy/test_chart.py::test_a", None),
    ],
)
def test_a_test_belongs_to_the_piece_of_its_cluster_or_its_file(
    nodeid: str, piece: str | None
) -> None:
    assert piece_of(nodeid) == (piece or nodeid.partition("::")[0])


def test_every_file_that_starts_a_browser_is_known() -> None:
    found = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("test_*.py")
        if "import sync_playwright" in (text := path.read_text(encoding="utf-8"))
        or "from playwright" in text
        or "from .test_browser import" in text
    }
    assert found - {"tests/architecture/test_spread.py"} == IN_A_BROWSER
