"""What a page shows, as a file: the same filters, the same visibility, its own style."""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as ET
from collections import Counter
from datetime import timedelta
from html import escape

import pytest
from django.db import DatabaseError, connection
from django.test import Client
from django.utils import timezone
from playwright.sync_api import Browser

from hami_web.access.audit import SYSTEM, Action, record
from hami_web.dashboard.cells import CellState
from hami_web.dashboard.cluster_map import ClusterMap, WaitingPod
from hami_web.dashboard.moments import written
from hami_web.dashboard.picture_file import style
from hami_web.history.conditions import AlertCode
from hami_web.history.models import Alert
from hami_web.tabular import csv_text

from .filled import fill_tables
from .given import GivenMap
from .samples import cluster_map
from .test_browser import browser  # noqa: F401  # fixture
from .test_drawing import GPU, IDENTITY, drawn, node, pod
from .test_every_page import _rows_beside_the_browser  # noqa: F401  # fixture

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("live")]
PAGES = ["/", "/namespaces", "/alerts", "/drift", "/audit", "/fragmentation"]
QUESTIONS = ["/what-if?wish=3g.20gb+x3", "/drain-plan?profile=3g.20gb&count=3"]


def rows(client: Client, address: str) -> list[dict[str, str]]:
    answer = client.get(address)
    assert answer.status_code == 200, address
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(io.StringIO(answer.content.decode(), newline="")))


@pytest.mark.parametrize("path", PAGES)
def test_every_list_page_offers_itself_as_csv_and_json(client: Client, settings, path: str) -> None:
    settings.ANONYMOUS_ROLE = "admin"
    page = client.get(path).content.decode()
    assert 'href="?format=csv" download' in page
    answer = client.get(f"{path}?format=json")
    assert answer["Content-Disposition"].endswith('.json"')
    assert isinstance(json.loads(answer.content)["rows"], list)
    assert client.get(f"{path}?format=xlsx").status_code == 400


def test_a_file_of_the_map_has_what_the_filters_leave(client: Client) -> None:
    everything = rows(client, "/?format=csv")
    total = sum(len(row.cells) for row in cluster_map().rows.values())
    assert len(everything) == total
    some = rows(client, "/?namespace=web&format=csv")
    assert {row["node"] for row in some} == {"gpu-a30-01"}
    page = client.get("/?namespace=web&view=table").content.decode()
    assert 'href="?namespace=web&amp;view=table&amp;format=csv"' in page


def test_json_and_csv_tell_the_same(client: Client) -> None:
    told = json.loads(client.get("/?format=json").content)["rows"]
    read = rows(client, "/?format=csv")
    assert [
        {name: "" if value is None else str(value) for name, value in row.items()} for row in told
    ] == read


@pytest.fixture
def scattered(live: GivenMap) -> ClusterMap:
    """One of two GPUs is scattered: 3g.20gb fits twice, and once more where one Pod moves."""
    known = drawn([node()], [pod("a", 0, 1, IDENTITY), pod("b", 4, 1)])
    live.show(ClusterMap(9, known.nodes, (WaitingPod("team/waits", ""),), known.records))
    return known


def test_an_answer_of_what_if_as_a_file_has_places_and_what_is_in_the_way(
    client: Client, scattered: ClusterMap
) -> None:
    found = rows(client, f"{QUESTIONS[0]}&format=csv")
    kinds = Counter(row["row"] for row in found)
    assert (kinds["place"], kinds["smaller"]) == (2, 1)
    refusals = {(row["node"], row["reason"]) for row in found if row["row"] == "refusal"}
    assert ("n1", "CardMigTopologyInfeasible") in refusals
    (way,) = [row for row in found if row["row"] == "in_the_way"]
    assert way["pod"] in ("team/a", "team/b")
    assert (way["node"], way["profile"]) == ("n1", "1g.5gb")
    place = found[0]
    gpu = scattered.rows[place["gpu_uuid"]]
    assert (place["node"], place["gpu_index"]) == (gpu.node, str(gpu.index))
    assert (place["start"], place["size"]) in {("0", "4"), ("4", "4")}
    assert rows(client, "/what-if?format=csv") == []


@pytest.mark.usefixtures("scattered")
def test_a_drain_plan_as_a_file_has_moves_places_and_commands(client: Client) -> None:
    found = rows(client, f"{QUESTIONS[1]}&format=csv")
    (move,) = [row for row in found if row["row"] == "move"]
    assert move["pod"] in ("team/a", "team/b")
    assert move["to_gpu_uuid"].startswith("GPU-")
    assert len([row for row in found if row["row"] == "free"]) == 3
    page = client.get(QUESTIONS[1]).content.decode()
    commands = [row["command"] for row in found if row["command"]]
    assert len(commands) > 3
    assert all(escape(line) in page for line in commands)
    assert rows(client, "/drain-plan?format=csv") == []


@pytest.mark.usefixtures("scattered")
@pytest.mark.parametrize("path", QUESTIONS)
def test_a_file_of_a_plan_names_nobody_who_may_not_be_seen(
    client: Client, settings, path: str
) -> None:
    page = client.get(path).content.decode()
    asked = path.partition("?")[2]
    assert f'href="?{escape(asked)}&amp;format=csv"' in page
    settings.ANONYMOUS_NAMESPACES = ("web",)
    text = client.get(f"{path}&format=csv").content.decode()
    assert GPU in text
    assert "team" not in text
    assert client.get(f"{path}&format=svg").status_code == 400


@pytest.mark.usefixtures("scattered")
def test_the_files_of_node_pod_history_and_checks_have_what_their_pages_have(
    client: Client,
) -> None:
    fill_tables(1)
    cells = rows(client, "/nodes/n1?format=csv")
    assert {row["pod"] for row in cells} == {"", "team/a", "team/b"}
    assert client.get("/nodes/n1?format=svg")["Content-Type"] == "image/svg+xml"
    (reservation,) = rows(client, "/pods/team/a0?format=csv")
    assert (reservation["row"], reservation["gpu_uuid"]) == ("reservation", GPU)
    attempts = rows(client, "/pods/team/waits?format=csv")
    assert {row["row"] for row in attempts} == {"attempt"}
    assert "no available node" in {row["message"] for row in attempts}
    then = written(timezone.now() - timedelta(minutes=45))
    changes = rows(client, f"/history?at={then}&format=csv")
    assert ("released", "team-0", "gone0") in {
        (row["change"], row["namespace"], row["pod"]) for row in changes
    }
    for path in (f"/gpus/{GPU}", "/nodes/n1"):
        past = rows(client, f"{path}?at={then}&format=csv")
        assert {row["pod"] for row in past} == {"", "team/a0", "team-0/gone0"}
        assert client.get(f"{path}?at={then}&format=svg")["Content-Type"] == "image/svg+xml"
    (ready,) = rows(client, "/migration?format=csv")
    assert (ready["node"], ready["readiness"], ready["blockers"]) == ("n1", "not_ready", "1")
    (finding,) = rows(client, "/migration/1?format=csv")
    assert (finding["code"], finding["evidence"]) == ("MigConfigLabel", "x")
    assert rows(client, "/migration/1?severity=warning&format=csv") == []
    assert rows(client, "/migration/1?node=n1&format=csv") == [finding]


@pytest.mark.usefixtures("scattered")
def test_a_file_that_cannot_be_made_is_an_error(client: Client) -> None:
    def broken(*_: object) -> None:
        raise DatabaseError("gone")

    for path in ("/pods/team/a?", "/history?", f"{QUESTIONS[1]}&", "/migration?"):
        with connection.execute_wrapper(lambda *_: broken()):
            assert client.get(f"{path}format=csv").status_code == 503, path


@pytest.mark.parametrize("kind", ["csv", "json", "svg"])
@pytest.mark.parametrize("path", ["/", "/namespaces/web", "/gpus/one"])
def test_a_file_names_nobody_who_may_not_be_seen(
    client: Client, settings, live: GivenMap, kind: str, path: str
) -> None:
    settings.ANONYMOUS_NAMESPACES = ("web",)
    if path.startswith("/gpus"):
        known = drawn([node()], [pod("a", 0, 1)])
        live.show(ClusterMap(9, known.nodes, (), known.records))
        path = f"/gpus/{next(iter(known.rows))}"
    answer = client.get(f"{path}?format={kind}")
    assert answer.status_code == 200
    text = re.sub(r"<style>.*?</style>", "", answer.content.decode())
    assert not re.search(r"team|research|finetune|\bml/", text)
    assert "web/" in text or path.startswith("/gpus")


def test_alerts_and_audit_as_files_have_their_rows(client: Client, settings) -> None:
    settings.ANONYMOUS_ROLE = "admin"
    now = timezone.now()
    Alert.objects.create(
        code=AlertCode.CONFLICT, subject="=cmd()", namespace="team", text="t",
        raised_at=now, seen_at=now,
    )  # fmt: skip
    record(SYSTEM, Action("gpu.cordon", "gpu", "GPU-1"))
    (alert,) = rows(client, "/alerts?format=csv")
    assert alert["subject"] == "'=cmd()"
    assert alert["raised_at"].endswith("Z")
    verbs = [row["verb"] for row in rows(client, "/audit?verb=gpu.cordon&format=csv")]
    assert verbs == ["gpu.cordon"]
    assert rows(client, "/audit?verb=none&format=csv") == []


def test_a_text_that_spreadsheets_would_calculate_is_quoted() -> None:
    assert csv_text(["a"], [["=1+1"], [{"b": 1}]]) == 'a\r\n\'=1+1\r\n"{""b"":1}"\r\n'


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_picture_needs_nothing_else(client: Client, theme: str) -> None:
    answer = client.get(f"/?format=svg&theme={theme}")
    assert answer["Content-Type"] == "image/svg+xml"
    text = answer.content.decode()
    root = ET.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "var(" not in text
    assert not re.search(r"url\((?!#)|@import|<script", text)
    assert text.count('class="memory"') == len(cluster_map().rows)
    assert client.get("/?format=svg&theme=pink").status_code == 400


def test_every_state_is_drawn_in_its_colours_in_both_themes() -> None:
    for state in set(CellState):
        assert f".cell.{state} .ground" in style("light")
    assert style("light") != style("dark")
    assert "#4b97e0" in style("dark")


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_saved_picture_shows_colours_and_patterns_by_itself(
    browser: Browser,  # noqa: F811
    client: Client,
    tmp_path,
    theme: str,
) -> None:
    file = tmp_path / "map.svg"
    file.write_bytes(client.get(f"/?format=svg&theme={theme}").content)
    page = browser.new_page()
    page.goto(file.as_uri())
    fills = page.evaluate(
        """() => Object.fromEntries(['realized', 'bound', 'conflicted'].map(state => [state,
          getComputedStyle(document.querySelector(`a.cell.${state} .ground`)).fill]))"""
    )
    expected = {"light": "rgb(31, 111, 191)", "dark": "rgb(75, 151, 224)"}
    assert fills["realized"] == expected[theme]
    assert len(set(fills.values())) == 3
    page.close()
