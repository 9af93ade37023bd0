"""Tests on a real Kubernetes are one piece of work, whatever else is spread over processes."""

from __future__ import annotations

import pytest

from tests.spread import KUBERNETES, piece_of


@pytest.mark.parametrize(
    ("nodeid", "piece"),
    [
        ("tests/cluster/test_fire.py::test_a", KUBERNETES),
        ("tests/deploy/test_release.py::test_a", KUBERNETES),
        ("tests/simulator/contract/test_writes.py::test_a[real]", KUBERNETES),
        ("tests/simulator/contract/test_lists.py::test_a[real-2]", KUBERNETES),
        ("tests/simulator/contract/test_lists.py::test_a[simulated-2]", None),
        ("tests/core/test_request.py::test_a[real]", None),
        ("tests/deploy/test_chart.py::test_a", None),
    ],
)
def test_a_test_belongs_to_the_piece_of_its_cluster_or_its_file(
    nodeid: str, piece: str | None
) -> None:
    assert piece_of(nodeid) == (piece or nodeid.partition("::")[0])
