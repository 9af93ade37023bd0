"""The picture of one GPU, read as text."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from hami_web.core.occupancy import Occupancy
from hami_web.core.placement import Placement
from hami_web.dashboard.cells import Cell, CellState, cover_grid, free_runs
from hami_web.dashboard.slice_map import is_patterned, render_patterns, render_row
from hami_web.dashboard.wording import STATE_MEANINGS, STATE_WORDS

from .samples import cell, row

TAKEN = [state for state in CellState if state is not CellState.FREE]


def texts(svg: str) -> list[str]:
    return ["".join(node.itertext()) for node in ET.fromstring(svg).iter("text")]


@pytest.mark.parametrize("state", TAKEN)
def test_a_cell_says_profile_pod_placement_and_state(state: CellState) -> None:
    svg = render_row(row("n", 0, [cell(4, 4, state, "3g.20gb", "team-a/train-1")]))
    assert {"3g.20gb", "train-1", f"4:4 {STATE_WORDS[state]}"} <= set(texts(svg))


def test_free_memory_slices_are_one_cell_per_run() -> None:
    svg = render_row(row("n", 0, [cell(2, 2, CellState.REALIZED, "2g.10gb", "a/b")]))
    assert {"0:2", "4:4"} <= set(texts(svg))


def test_every_memory_slice_has_its_number() -> None:
    for grid in (4, 5):
        svg = ET.fromstring(f"<svg>{render_patterns()}{render_row(row('n', 0, grid=grid))}</svg>")
        axis = svg.find(".//*[@class='axis']")
        drawn = svg.find(f".//*[@id='{axis.get('href')[1:]}']") if axis.get("href") else axis
        numbers = drawn.findall("text[@class='number']")
        assert [number.text for number in numbers] == [str(number) for number in range(grid)]


def test_a_cell_lies_where_its_memory_slices_are() -> None:
    svg = ET.fromstring(render_row(row("n", 0, [cell(2, 2, CellState.BOUND, "2g.10gb", "a/b")])))
    box = svg.find("./a[@data-pod='a/b']/svg")
    assert (box.get("x"), box.get("width")) == ("25%", "25%")


def test_foreign_text_is_escaped() -> None:
    evil = '"><script>alert(1)</script>'
    svg = render_row(row(evil, 0, [cell(0, 8, CellState.BLOCKED, evil, evil, detail=evil)]))
    assert "<script" not in svg
    assert ET.fromstring(svg).find("./a").get("data-pod") == evil


def test_each_state_but_plain_ones_has_a_pattern_of_its_own() -> None:
    defined = set(re.findall(r'id="fill-(\w+)"', render_patterns()))
    assert defined == {str(state) for state in CellState if is_patterned(state)}
    assert set(CellState) - {CellState(name) for name in defined} == {
        CellState.FREE,
        CellState.REALIZED,
    }


def test_each_state_has_words_and_a_meaning() -> None:
    assert set(STATE_WORDS) == set(STATE_MEANINGS) == set(CellState)


def test_a_cell_is_a_link_with_a_name_and_a_tip() -> None:
    svg = ET.fromstring(render_row(row("n", 0, [cell(0, 1, CellState.HELD, "1g.5gb", "a/b")])))
    links = svg.findall("./a")
    titles = [link.find("./title").text for link in links]
    assert titles == [
        "1g.5gb, held, placement 0:1 (1 memory slice), Pod a/b",
        "free, placement 1:7 (7 memory slices)",
    ]
    assert links[0].get("href") == "?view=table#GPU-n-0-5f0c-0"


def test_a_long_name_is_cut_in_the_middle_and_whole_in_the_tip() -> None:
    name = "team/a-very-long-workload-name-x7k2p"
    svg = render_row(row("n", 0, [cell(0, 1, CellState.REALIZED, "1g.5gb", name)]))
    shown = next(text for text in texts(svg) if "…" in text)
    assert shown.startswith("a-very")
    assert name.endswith(shown.partition("…")[2])
    assert f"Pod {name}" in svg


def test_overlapping_cells_become_one_conflict_that_names_both() -> None:
    cells = cover_grid(
        [cell(0, 2, CellState.BOUND, "2g", "a/1"), cell(1, 2, CellState.REALIZED, "2g", "b/2")], 8
    )
    assert cells[0] == Cell(Placement(0, 3), CellState.CONFLICTED, "2g", "a/1, b/2")
    assert cells[1] == Cell(Placement(3, 5), CellState.FREE)


def test_a_full_gpu_has_no_free_run() -> None:
    cells = cover_grid([cell(0, 8, CellState.REALIZED, "7g.40gb", "a/b")], 8)
    assert [each.state for each in cells] == [CellState.REALIZED]


def test_free_runs_of_an_empty_grid_are_none() -> None:
    assert free_runs(Occupancy(), 0) == ()
