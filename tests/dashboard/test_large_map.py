"""Maps of so many GPUs that it matters what each of them costs."""

from __future__ import annotations

import gzip
import re
from dataclasses import replace

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.test import Client
from playwright.sync_api import Page, expect

from hami_web.dashboard import presentation
from hami_web.dashboard.brief_rows import ABOVE
from hami_web.dashboard.cells import CellState
from hami_web.dashboard.cluster_map import SHORT_NAME, ClusterMap, NodeBlock
from hami_web.dashboard.events import change_event
from hami_web.dashboard.fragments import PartStyle, drawn_parts
from hami_web.dashboard.live import Change

from .given import GivenMap
from .large import large_map
from .samples import cell, cluster_map, row
from .test_axe import RULES
from .test_browser import browser, page, site  # noqa: F401  # fixtures
from .test_browser import pytestmark as in_a_browser
from .test_every_page import OUTLINE

MOST = 120_000
"""Bytes of a compressed map."""
KIN = "team/twice"
UUID = "GPU-7b2d0a52-55b3-5a3f-8d9c-0a8b2f3c1d4e"


def compressed(client: Client, path: str = "/", language: str = "en") -> int:
    answer = client.get(path, headers={"accept-encoding": "gzip", "accept-language": language})
    assert answer["Content-Encoding"] == "gzip"
    assert len(gzip.decompress(answer.content)) > 500_000
    return len(answer.content)


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_a_map_of_2000_gpus_is_small(client: Client, live: GivenMap, language: str) -> None:
    live.show(large_map(2_000))
    assert compressed(client, language=language) < MOST


def test_a_change_on_a_map_of_2000_gpus_moves_little() -> None:
    shown = large_map(2_000)
    for uuid in [*shown.rows][:100]:
        parts = drawn_parts(shown, [uuid], PartStyle("en", brief=True))
        assert parts.keys() == {uuid, "summary"}
        assert len(change_event(Change(2, (uuid,)), parts).encode()) < 5_000


def test_the_largest_map_of_whole_rows_is_small_too(client: Client, live: GivenMap) -> None:
    live.show(large_map(ABOVE))
    assert compressed(client) < MOST
    assert 'class="gpu brief"' not in client.get("/").content.decode()


def test_a_large_map_has_each_gpu_with_its_cells_and_a_link(client: Client, live: GivenMap) -> None:
    shown = large_map(ABOVE + 8)
    live.show(shown)
    text = client.get("/").content.decode()
    rows = re.findall(
        r'<article class="gpu brief" id="gpu-(\S+)"><a href="/gpus/(\S+)">(.*?)</article>', text
    )
    assert [name for name, _, _ in rows] == [uuid[:SHORT_NAME] for uuid in shown.rows]
    assert [name for _, name, _ in rows] == [name for name, _, _ in rows]
    for (_, _, drawn), gpu in zip(rows, shown.rows.values(), strict=True):
        titles = re.findall(r"<title>(.*?)</title>", drawn)
        assert [title.rpartition(", ")[2] for title in titles] == [
            str(each.placement) for each in gpu.cells
        ]
        assert [title.partition(", ")[0] for title in titles] == [
            each.profile or "free" for each in gpu.cells
        ]


def test_whoever_wants_room_for_each_gpu_of_a_large_map_gets_whole_rows(
    client: Client, live: GivenMap
) -> None:
    live.show(large_map(ABOVE + 8))
    text = client.get("/?density=comfortable").content.decode()
    assert '<div class="nodes comfortable many">' in text
    assert 'class="gpu brief"' not in text


def test_a_search_that_leaves_few_gpus_shows_them_whole(client: Client, live: GivenMap) -> None:
    shown = large_map(ABOVE + 8)
    live.show(shown)
    text = client.get("/", {"q": next(iter(shown.rows))}).content.decode()
    assert '<div class="nodes comfortable">' in text
    assert text.count('<article class="gpu"') == 1


def test_the_short_name_of_a_gpu_leads_to_it_unless_another_begins_alike(
    client: Client, live: GivenMap
) -> None:
    alone = row("n", 0, model="NVIDIA A30")
    alike = [row("gpu-node", index) for index in range(2)]
    live.show(ClusterMap(9, (NodeBlock("n", (alone, *alike)),)))
    shown = live.current()
    assert shown is not None
    assert [shown.short_name(uuid) for uuid in shown.rows] == [
        "GPU-n-0-5f0c", "GPU-gpu-node-0-5f0c", "GPU-gpu-node-1-5f0c",
    ]  # fmt: skip
    uuid = next(iter(large_map(8).rows))
    live.show(large_map(8, version=10))
    moved = client.get(f"/gpus/{uuid[:SHORT_NAME]}?format=csv")
    assert (moved.status_code, moved["Location"]) == (302, f"/gpus/{uuid}?format=csv")
    assert f'id="gpu-{uuid}"' in client.get(f"/fragments/gpus/{uuid[:SHORT_NAME]}").content.decode()
    assert client.get(f"/fragments/gpus/{uuid[:8]}").status_code == 404


@pytest.mark.parametrize(
    ("group", "titles"),
    [("model", ["NVIDIA A100-SXM4-40GB", "NVIDIA H100 80GB HBM3"]), ("pool", ["no pool"])],
)
def test_a_large_map_in_groups_names_the_node_of_each_gpu(
    client: Client, live: GivenMap, group: str, titles: list[str]
) -> None:
    live.show(large_map(ABOVE + 8))
    text = client.get(f"/?group={group}").content.decode()
    assert re.findall(r'<h2 id="node-.*?">(.*?)</h2>', text) == titles
    assert text.count('<p class="of-node"><a href="/nodes/gpu-node-001">') == 8


class TestInABrowser:
    """With the samples, drawn as if they were many."""

    pytestmark = in_a_browser

    @pytest.fixture(autouse=True)
    def _many(self, live: GivenMap, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(presentation, "ABOVE", 1)
        twin = cell(2, 1, CellState.REALIZED, "1g.5gb", KIN)
        rows = (row("n", 0, [twin]), replace(row("n", 1, [twin]), uuid=UUID))
        live.show(ClusterMap(8, (NodeBlock("n", rows), *cluster_map().nodes)))

    def test_pointing_lights_up_a_pod_and_completes_its_row(self, page: Page) -> None:  # noqa: F811
        page.goto("/")
        assert page.evaluate(OUTLINE) == {"spill": 0, "headings": 1, "unnamed": [], "doubled": []}
        found = Axe().run(page, options=RULES).response["violations"]
        assert [(item["id"], item["nodes"][0]["html"][:160]) for item in found] == []
        gpu = page.locator("#gpu-GPU-n-0-5f0c")
        height = gpu.evaluate("gpu => gpu.offsetHeight")
        page.locator("#gpu-GPU-n-0-5f0c .cell.realized").hover()
        expect(page.locator(".cell.kin")).to_have_count(2)
        completed = page.locator("#gpu-GPU-n-0-5f0c a.cell.realized")
        expect(completed).to_have_class(re.compile("kin"))
        expect(completed.locator("title")).to_contain_text(f"Pod {KIN}")
        assert gpu.evaluate("gpu => gpu.offsetHeight") == height
        assert page.locator("#gpu-GPU-7b2d0a52.brief").count() == 1

    def test_a_row_is_completed_for_the_keyboard_and_for_links_to_memory_slices(
        self,
        page: Page,  # noqa: F811
        live: GivenMap,
    ) -> None:
        page.goto("/")
        link = page.locator("#gpu-GPU-n-0-5f0c > a")
        assert link.get_attribute("href") == "/gpus/GPU-n-0-5f0c"
        link.focus()
        expect(page.locator("#gpu-GPU-n-0-5f0c h3 a")).to_be_focused()
        page.keyboard.press("Tab")
        page.keyboard.press("ArrowRight")
        expect(page.locator("#gpu-GPU-n-0-5f0c a.cell.realized")).to_be_focused()
        expect(page.locator(".cell.kin")).to_have_count(2)
        page.keyboard.press("ArrowDown")
        expect(page.locator(f"#gpu-{UUID} a.cell.realized")).to_be_focused()
        for uuid in ("GPU-gpu-a100-01-0-5f0c", UUID):
            page.goto(f"/?#gpu-{uuid}-2:2")
            expect(page.locator("a.cell.sought")).to_be_focused()

    def test_a_change_draws_its_row_alone_and_leaves_it_as_whole_as_it_was(
        self,
        page: Page,  # noqa: F811
        live: GivenMap,
    ) -> None:
        page.goto("/")
        expect(page.locator("#link")).to_have_text("live")
        page.evaluate("document.querySelectorAll('.gpu').forEach(gpu => gpu.dataset.old = 'yes')")
        self._change(live, CellState.BOUND)
        gpu = page.locator("[id^=gpu-GPU-7b2d0a52]")
        expect(gpu.locator("svg.bound")).to_be_visible()
        expect(gpu).to_have_class(re.compile("brief"))
        gpu.hover()
        expect(gpu.locator("a.cell.bound")).to_be_visible()
        self._change(live, CellState.REALIZED)
        expect(gpu.locator("a.cell.realized")).to_be_visible()
        assert page.locator(".gpu:not([data-old])").count() == 1

    def _change(self, live: GivenMap, state: CellState) -> None:
        shown = live.current()
        assert shown is not None
        new = replace(row("n", 1, [cell(0, 4, state, "3g.20gb", "team/new")]), uuid=UUID)
        changed = NodeBlock("n", (shown.nodes[0].rows[0], new))
        live.show(ClusterMap(shown.version + 1, (changed, *shown.nodes[1:])))
