"""The pages and fragments as a browser without JavaScript gets them."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from hami_web.dashboard.cells import CellState
from hami_web.dashboard.cluster_map import ClusterMap
from hami_web.dashboard.freshness import Freshness
from hami_web.dashboard.installed import install_notices
from hami_web.dashboard.wording import TIMES

from .given import GivenMap
from .samples import cluster_map

pytestmark = pytest.mark.usefixtures("live")


def body(client: Client, path: str = "/", **headers: str) -> str:
    return client.get(path, headers=headers).content.decode()


def test_the_page_has_a_title_and_every_gpu(client: Client) -> None:
    page = body(client)
    assert "<title>Cluster map · HAMi MIG</title>" in page
    assert page.count('<article class="gpu"') == cluster_map().gpu_count == 5


def test_the_legend_explains_every_state_that_can_be_seen(client: Client) -> None:
    legend = re.search(r'class="legend".*?</section>', body(client), re.DOTALL)[0]
    seen = [str(state) for state in CellState if state is not CellState.UNAVAILABLE]
    assert re.findall(r'class="cell (\w+)"', legend) == seen


def test_a_hold_is_explained_only_where_there_is_one(client: Client, live: GivenMap) -> None:
    live.show(ClusterMap(8, cluster_map().nodes[2:]))
    assert 'class="cell held"' not in body(client)


def test_the_table_says_what_the_map_says(client: Client) -> None:
    table = body(client, "/?view=table")
    lines = re.findall(r'<tr id="(\S+)" class="(\w+)">', table)
    links = re.findall(r'class="cell (\w+) \w+" href="\?view=table#(\S+)"', body(client))
    assert lines == [(anchor, state) for state, anchor in links]
    assert "4\N{NARROW NO-BREAK SPACE}864 MiB" in table


def test_numbers_carry_their_units(client: Client) -> None:
    page = body(client)
    assert "40\N{NARROW NO-BREAK SPACE}960 MiB · 8 memory slices" in page
    assert f"2g.10gb {TIMES}1 · 1g.5gb {TIMES}3" in page


def test_a_waiting_pod_is_shown_with_the_reason(client: Client) -> None:
    page = body(client)
    assert "ml/train-9" in page
    assert "CardMigTopologyInfeasible" in page


def test_a_node_that_takes_no_work_says_why(client: Client) -> None:
    assert "the node is not ready or its agent is silent" in body(client)


def test_an_empty_cluster_is_explained(client: Client, live: GivenMap) -> None:
    live.show(ClusterMap(9, ()))
    page = client.get("/")
    assert page.status_code == 200
    assert "No GPU nodes yet" in page.content.decode()


def test_without_data_the_page_says_so_and_tries_again(client: Client, live: GivenMap) -> None:
    live._map = None
    live.told = Freshness(None, "GET /api/v1/nodes: no connection")
    page = client.get("/")
    assert page.status_code == 503
    text = page.content.decode()
    assert "No data from the cluster yet" in text
    assert "GET /api/v1/nodes: no connection" in text
    assert '<meta http-equiv="refresh" content="5">' in text


def test_old_data_is_shown_as_old_with_its_age_and_cause(client: Client, live: GivenMap) -> None:
    live.told = Freshness(240.4, "the stream broke")
    text = body(client)
    assert "The cluster has not answered for 240 s" in text
    assert "the stream broke" in text
    assert 'class="age stale"' in text
    assert 'id="gpu-GPU-' in text


def test_silence_without_a_failure_is_no_alarm_for_a_minute(client: Client, live: GivenMap) -> None:
    live.told = Freshness(60.0)
    assert 'role="alert"' not in body(client)


def test_nothing_is_inline_and_nothing_comes_from_elsewhere(client: Client) -> None:
    response = client.get("/")
    page = response.content.decode()
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", page)
    assert re.findall(r'(?:src|href)="(?!/static/|\?|#|/)[^"]*"', page) == []


def test_a_fragment_is_one_gpu_with_an_etag(client: Client) -> None:
    uuid = next(iter(cluster_map().rows))
    first = client.get(f"/fragments/gpus/{uuid}")
    assert first.content.decode().startswith(f'<article class="gpu" id="gpu-{uuid}"')
    again = client.get(f"/fragments/gpus/{uuid}", headers={"if-none-match": first["ETag"]})
    assert again.status_code == 304


def test_a_gpu_that_is_gone_is_404(client: Client) -> None:
    assert client.get("/fragments/gpus/GPU-none").status_code == 404


def test_only_reading_is_allowed(client: Client) -> None:
    assert client.post("/").status_code == 405


def test_readiness_follows_the_data(client: Client, live: GivenMap) -> None:
    assert client.get("/readyz").status_code == 200
    live._map = None
    assert client.get("/readyz").status_code == 503
    assert client.get("/healthz").status_code == 200


def test_static_files_are_served(client: Client) -> None:
    response = client.get("/static/dashboard/dashboard.js")
    assert response.status_code == 200
    assert "EventSource" in response.content.decode()


def test_readiness_tells_what_does_not_work_elsewhere_and_stays_ready(
    client: Client, live: GivenMap
) -> None:
    install_notices(lambda: ["the worker's queue: silent since noon"])
    answer = client.get("/readyz")
    assert (answer.status_code, answer.content.decode().splitlines()[1:]) == (
        200,
        ["the worker's queue: silent since noon"],
    )
