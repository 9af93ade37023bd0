"""The soak, short: the same run as ``python -m tests.scheduling.soak`` with few Pods."""

from __future__ import annotations

import pytest

from tests.scheduling.soak.soak import Soak

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


def test_short_pods_with_killed_programs_leave_nothing() -> None:
    report = Soak(30, seed=7, kills=((20, "agent"), (50, "extender"))).run()
    assert report.created == 30
    assert report.kills == 2
    assert report.finished >= 15
    assert {what: found for what, found in report.left.items() if found} == {}
