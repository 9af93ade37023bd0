"""What a page shows, as a file: the same filters, the same visibility, its own style."""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as ET

import pytest
from django.test import Client
from django.utils import timezone
from playwright.sync_api import Browser

from hami_web.access.audit import SYSTEM, Action, record
from hami_web.dashboard.cells import CellState
from hami_web.dashboard.cluster_map import ClusterMap
from hami_web.dashboard.picture_file import style
from hami_web.history.conditions import AlertCode
from hami_web.history.models import Alert
from hami_web.tabular import csv_text

from .given import GivenMap
from .samples import cluster_map
from .test_browser import browser  # noqa: F401  # fixture
from .test_drawing import drawn, node, pod
from .test_every_page import _rows_beside_the_browser  # noqa: F401  # fixture

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("live")]
PAGES = ["/", "/namespaces", "/alerts", "/drift", "/audit", "/fragmentation"]


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
