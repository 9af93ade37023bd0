"""GPUs with tenants, drawn at random or written down."""

from __future__ import annotations

from hypothesis import strategies as st

from hami_web.core.housing import Housing, Tenant
from hami_web.core.placement import Placement
from hami_web.core.tables import ProfileTable
from tests.boards import board

A100 = ProfileTable(board())
A30 = ProfileTable(board("a30"))


def house(
    *tenants: tuple[str, str, int], uuid: str = "GPU-0", table: ProfileTable = A100
) -> Housing:
    """A GPU with tenants given as (owner, profile, start)."""
    return Housing(
        "node-1",
        uuid,
        table,
        tuple(
            Tenant(owner, name, Placement(start, table.by_name[name].memory_slices))
            for owner, name, start in tenants
        ),
    )


@st.composite
def houses(draw: st.DrawFn, most: int = 3, owners: int = 6) -> list[Housing]:
    """Some GPUs of a model, filled with legal instances of a few Pods."""
    table = draw(st.sampled_from([A100, A30]))
    found = []
    for number in range(draw(st.integers(1, most))):
        state = 0
        tenants = []
        for _ in range(draw(st.integers(0, 4))):
            shape = draw(st.sampled_from(table.shapes))
            fits = table.fits(state, shape)
            if fits:
                fit = draw(st.sampled_from(fits))
                state = fit.state
                owner = f"pod-{draw(st.integers(1, owners))}"
                priority = int(owner[4:]) % 3
                tenants.append(Tenant(owner, shape.profile.name, fit.placement, priority))
        blocked = draw(st.sampled_from([(), (Placement(0, 1),)])) if not state & 1 else ()
        found.append(Housing(f"node-{number}", f"GPU-{number}", table, tuple(tenants), blocked))
    return found
