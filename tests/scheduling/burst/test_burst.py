"""A burst for one node, small; ``python -m tests.benchmarks.burst`` runs the whole one."""

from __future__ import annotations

import pytest

from tests.scheduling.burst.world import run_burst

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


def test_pods_bound_at_once_start_in_about_the_sum_of_their_allocates() -> None:
    found = run_burst(pods=12, gpus=2, create_s=0.2)
    print(f"{found.wall_s:.2f} s, of which {sum(found.allocate_s):.2f} s in 12 Allocates")
    assert found.refused == ()
    assert found.running == found.instances == len(found.allocate_s) == 12
    assert found.shared == 0
    assert sum(found.allocate_s) > 12 * 0.2
    assert found.ratio < 2
