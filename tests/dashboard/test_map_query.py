"""What the address leaves of the map, and in which order."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from django.test import Client

from hami_web.dashboard.map_query import InvalidQuery, MapQuery, parse_query, select
from hami_web.dashboard.wording import TIMES

from .given import GivenMap
from .samples import cluster_map

pytestmark = pytest.mark.usefixtures("live")


def nodes(client: Client, path: str) -> list[str]:
    return re.findall(r'<h2 id="node-([^"]+)"', client.get(path).content.decode())


def gpus(client: Client, path: str) -> int:
    return client.get(path).content.decode().count('<article class="gpu"')


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("?q=finetune", 1),
        ("?q=FINETUNE", 1),
        ("?q=gpu-a30", 1),
        ("?q=A100", 2),
        ("?q=2g.12gb", 1),
        ("?state=conflicted", 1),
        ("?state=blocked", 1),
        ("?namespace=team-a", 2),
        ("?model=NVIDIA A30", 1),
        ("?namespace=team-a&state=blocked", 1),
        ("?q=nobody-has-this", 0),
    ],
)
def test_a_query_leaves_the_gpus_that_match(client: Client, query: str, left: int) -> None:
    assert gpus(client, "/" + query) == left


def test_a_query_without_a_match_says_so_and_leads_back(client: Client) -> None:
    page = client.get("/?q=nobody-has-this").content.decode()
    assert "Nothing matches" in page
    assert "None of the 5 GPUs" in page
    assert 'href="/?view=map"' in page


def test_numbers_above_a_filtered_map_say_what_they_are_counted_over(client: Client) -> None:
    assert "1 of 5 GPUs; the numbers above count all." in client.get("/?q=A30").content.decode()


def test_gpus_can_be_grouped_by_model_and_keep_their_nodes_name(client: Client) -> None:
    page = client.get("/?group=model").content.decode()
    assert nodes(client, "/?group=model") == [
        "NVIDIA A100-SXM4-40GB",
        "NVIDIA A30",
        "NVIDIA H100 80GB HBM3",
    ]
    assert page.count('<p class="of-node"><a href="/nodes/gpu-a100-01">') == 2


def test_gpus_can_be_grouped_by_the_pools_of_their_nodes(client: Client, live: GivenMap) -> None:
    shown = cluster_map(8)
    pools = {"gpu-a100-01": "train", "gpu-h100-01": "train"}
    live.show(replace(shown, nodes=tuple(
        replace(block, pool=pools.get(block.name, "")) for block in shown.nodes
    )))  # fmt: skip
    page = client.get("/?group=pool").content.decode()
    titles = re.findall(r'<h2 id="node-([^"]*)">([^<]+)</h2>\n<p>([^<]+)', page)
    assert titles == [
        ("train", "train", f"2 {TIMES} NVIDIA A100-SXM4-40GB · 2 {TIMES} NVIDIA H100 80GB HBM3"),
        ("", "no pool", f"1 {TIMES} NVIDIA A30"),
    ]
    assert page.count('<p class="of-node"><a href="/nodes/gpu-h100-01">') == 2
    assert '<option value="pool" selected>Pool</option>' in page
    table = client.get("/?group=pool&view=table&model=NVIDIA+A30").content.decode()
    assert '<th scope="row">gpu-a30-01</th>' in table


def test_whoever_sees_few_namespaces_keeps_the_pools(
    client: Client, live: GivenMap, settings
) -> None:
    settings.ANONYMOUS_NAMESPACES = ("web",)
    shown = cluster_map(8)
    live.show(replace(shown, nodes=tuple(replace(each, pool="p") for each in shown.nodes)))
    assert nodes(client, "/?group=pool") == ["p"]


def test_the_emptiest_gpu_comes_first_when_sorted_by_free_memory_slices() -> None:
    blocks = select(cluster_map(), MapQuery(sort="free"))
    assert blocks[0].name == "gpu-h100-01"
    assert blocks[0].rows[0].index == 1


@pytest.mark.parametrize(
    ("text", "field", "allowed"),
    [
        ("sort=size", "sort", "name, free, fragmentation"),
        ("view=", "view", "map, table"),
        ("density=tiny", "density", "auto, comfortable, compact, dense"),
        ("state=gone", "state", "free"),
        ("colour=red", "colour", "one of view"),
        ("q=" + "x" * 201, "q", "at most 200 characters"),
    ],
)
def test_a_parameter_that_means_nothing_is_refused_by_name(
    client: Client, text: str, field: str, allowed: str
) -> None:
    response = client.get(f"/?{text}")
    page = response.content.decode()
    assert response.status_code == 400
    assert f"Parameter {field} is not understood" in page
    assert allowed in page


def test_what_is_searched_for_is_escaped(client: Client) -> None:
    page = client.get("/", {"q": '"><script>alert(1)</script>'}).content.decode()
    assert "<script>alert" not in page


def test_an_address_keeps_the_other_parameters_when_the_view_is_changed() -> None:
    query = parse_query({"q": "a&b", "density": "dense"})
    assert query.as_table == "?view=table&density=dense&q=a%26b"
    assert query.as_map == "?view=map&density=dense&q=a%26b"
    with pytest.raises(InvalidQuery):
        parse_query({"group": "rack"})


def test_only_a_plain_map_is_mended_row_by_row(client: Client, live: GivenMap) -> None:
    assert 'data-refresh="gpus"' in client.get("/?density=dense").content.decode()
    for query in ("q=a30", "view=table", "sort=free", "group=model", "group=pool", "state=free"):
        assert 'data-refresh="content"' in client.get(f"/?{query}").content.decode(), query


def test_an_open_page_gets_its_content_alone(client: Client) -> None:
    response = client.get("/?q=a30", headers={"X-Fragment": "content"})
    assert "<html" not in response.content.decode()
    assert response.content.decode().count('<article class="gpu"') == 1
    assert "X-Fragment" in response["Vary"]
