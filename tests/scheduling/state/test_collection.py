"""The garbage collector beside a large state."""

from __future__ import annotations

import gc

import pytest

from hami_web.scheduling.collection import settle, undisturbed


@pytest.mark.parametrize("enabled", [True, False])
def test_loading_undisturbed_leaves_the_collector_as_it_was(enabled: bool) -> None:
    before = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        with undisturbed():
            assert not gc.isenabled()
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()


def test_what_lives_when_things_settle_is_not_looked_at_again() -> None:
    thresholds = gc.get_threshold()
    try:
        kept = [[n] for n in range(1000)]
        settle()
        assert gc.get_freeze_count() > len(kept)
        assert not any(item is kept for item in gc.get_objects())
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
