"""What frees memory slices never takes a place away."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_web.core.placement import Placement
from hami_web.core.policy_names import RULES
from hami_web.core.tables import TableStore
from tests.boards import board, profiles_of
from tests.core.selection.nodes import Gpu, choose, wants

_TABLES = TableStore()
Instances = list[tuple[str, Placement]]


def filled(key: str, index: int, data: st.DataObject) -> tuple[Gpu, Instances]:
    """A GPU with all profiles of its board, limits and engines too, and what was put on it."""
    names = tuple(profile.name for profile in profiles_of(key))
    capability = board(key, f"GPU-{index}", index, names=names)
    table = _TABLES.table_for(capability)
    instances: Instances = []
    state = 0
    for _ in range(data.draw(st.integers(0, 5))):
        fits = [(shape, fit) for shape in table.shapes for fit in table.fits(state, shape)]
        if not fits:
            break
        shape, fit = data.draw(st.sampled_from(fits))
        instances.append((shape.profile.name, fit.placement))
        state = fit.state
    return Gpu(capability, table, state), instances


@pytest.mark.parametrize("key", ["a100-sxm4-40gb", "a30", "rtx-pro-6000-se"])
@given(data=st.data())
def test_a_request_that_fits_still_fits_once_an_instance_has_ended(
    key: str, data: st.DataObject
) -> None:
    gpus, instances = map(list, zip(*(filled(key, index, data) for index in (0, 1)), strict=True))
    asked = data.draw(
        st.lists(st.sampled_from([p.name for p in profiles_of(key)]), min_size=1, max_size=3)
    )
    policy = data.draw(st.sampled_from(RULES))
    if choose(wants(*asked), gpus, policy) is None:
        return
    for position, item in enumerate(gpus):
        for ended in range(len(instances[position])):
            rest = instances[position][:ended] + instances[position][ended + 1 :]
            freed = Gpu(item.capability, item.table, item.table.state_of(rest))
            cluster = [*gpus[:position], freed, *gpus[position + 1 :]]
            assert choose(wants(*asked), cluster, policy) is not None
