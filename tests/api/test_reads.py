"""What the REST API answers."""

from __future__ import annotations

import csv
import io
from xml.etree import ElementTree

import pytest
from django.test import Client

from hami_web.history.refusals import ObservedRefusal, note_refusals
from hami_web.history.samples import take_sample
from hami_web.inventory.selectors import live_gpus
from tests.mirror.observations import GPUS, moment

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("mirror")]
SVG = "{http://www.w3.org/2000/svg}"


def results(client: Client, path: str, **query: str) -> list[dict]:
    answer = client.get(f"/api/v1/{path}", query)
    assert answer.status_code == 200, answer.content
    return answer.json()["results"]


def test_gpus_name_node_profiles_and_blocked_memory_slices(client: Client) -> None:
    first = results(client, "gpus")[0]
    assert (first["uuid"], first["node"], first["memory_slices"]) == (GPUS[0], "n1", 8)
    assert first["profiles"] == ["1g.5gb", "2g.10gb", "3g.20gb", "7g.40gb"]
    assert first["blocked"][0]["reason"] == "foreign <instance>"


@pytest.mark.parametrize(
    ("path", "query", "names"),
    [
        ("gpus", {"node": "n2"}, ["GPU-2", "GPU-3"]),
        ("gpus", {"healthy": "false"}, ["GPU-3"]),
        ("gpus", {"uuid__in": "GPU-1,GPU-2", "ordering": "-uuid"}, ["GPU-2", "GPU-1"]),
    ],
)
def test_lists_filter_and_order(client: Client, path, query, names) -> None:
    assert [row["uuid"] for row in results(client, path, **query)] == names


@pytest.mark.parametrize(
    ("query", "pods"),
    [
        ({"live": "true"}, {"a", "b"}),
        ({"live": "false"}, {"c"}),
        ({"at": "2026-01-01T00:30:00Z"}, {"a", "b", "c"}),
        ({"at": "2026-01-01T01:00:10+00:00"}, {"a", "b"}),
        ({"at": "2025-12-31T00:00:00Z"}, set()),
        ({"phase__in": "realized,released"}, {"a", "c"}),
        ({"namespace": "other"}, {"c"}),
        ({"released_at__gte": "2026-01-01T01:00:00Z"}, {"c"}),
    ],
)
def test_reservations_of_any_moment_and_phase(client: Client, query, pods) -> None:
    assert {row["pod"] for row in results(client, "reservations", **query)} == pods


def test_pages_follow_each_other_to_the_end(client: Client) -> None:
    seen, url = [], "/api/v1/gpus?limit=3"
    while url:
        body = client.get(url).json()
        seen += [row["uuid"] for row in body["results"]]
        url = body["next"]
    assert seen == list(GPUS)


def test_fields_keeps_only_what_was_asked_for(client: Client) -> None:
    assert results(client, "nodes", fields="name,closed")[0] == {"name": "n1", "closed": ""}


def test_every_list_is_also_csv(client: Client) -> None:
    answer = client.get("/api/v1/gpus", {"format": "csv"})
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert answer["Content-Type"].startswith("text/csv")
    assert [row["uuid"] for row in rows] == list(GPUS)


def test_an_unchanged_answer_is_304(client: Client) -> None:
    first = client.get("/api/v1/gpus")
    again = client.get("/api/v1/gpus", headers={"if-none-match": first["ETag"]})
    assert again.status_code == 304


def test_a_map_covers_every_memory_slice_once(client: Client) -> None:
    found = client.get(f"/api/v1/gpus/{GPUS[0]}/map").json()["intervals"]
    places = [(item["start"], item["size"], item["state"]) for item in found]
    assert places == [
        (0, 1, "realized"),
        (1, 1, "free"),
        (2, 2, "reserved"),
        (4, 2, "blocked"),
        (6, 1, "free"),
        (7, 1, "free"),
    ]


def test_the_drawing_is_xml_with_foreign_texts_escaped(client: Client) -> None:
    answer = client.get(f"/api/v1/gpus/{GPUS[0]}/map.svg")
    assert answer["Content-Type"] == "image/svg+xml"
    drawing = ElementTree.fromstring(answer.content)
    assert len(drawing.findall(f"{SVG}g")) == 6
    titles = [title.text for title in drawing.iter(f"{SVG}title")]
    assert "blocked 4:2 foreign <instance>" in titles


def test_profiles_count_the_gpus_that_offer_them(client: Client) -> None:
    found = {row["name"]: (row["gpus"], row["placements"]) for row in results(client, "profiles")}
    assert found["3g.20gb"] == (4, [[0, 4], [4, 4]])


def test_fragmentation_is_the_cores(client: Client) -> None:
    found = client.get("/api/v1/fragmentation").json()
    rooms = {room["profile"]: (room["now"], room["packed"]) for room in found["rooms"]}
    assert rooms["7g.40gb"] == (3, 3)  # three GPUs are empty, the fourth is half taken
    assert 0 < found["value"] < 1


def test_usage_weighs_instances_by_their_share_of_the_gpu(client: Client) -> None:
    query = {"from": "2026-01-01T00:00:10Z", "to": "2026-01-01T02:00:10Z"}
    found = {(row["namespace"], row["profile"]): row for row in results(client, "usage", **query)}
    assert found["other", "7g.40gb"]["gpu_hours"] == pytest.approx(1.0)
    assert found["team", "2g.10gb"]["gpu_hours"] == pytest.approx(2 * 2 / 8)
    assert found["team", "1g.5gb"]["instance_hours"] == pytest.approx(2.0)


def test_why_tells_the_schedulers_words_of_one_pod(client: Client) -> None:
    note_refusals([ObservedRefusal("u", "team", "w", "0/2 full")], seen_at=moment(5))
    assert [row["message"] for row in results(client, "pods/team/w/why")] == ["0/2 full"]
    assert results(client, "pods/team/other/why") == []


def test_samples_are_read_back(client: Client) -> None:
    take_sample(moment(20))
    found = results(client, "samples", cluster="true")
    assert [(row["node"], row["gpus"], row["reserved_memory_slices"]) for row in found] == [
        ("", 4, 3)
    ]


@pytest.mark.parametrize(
    ("path", "queries"),
    [
        ("nodes", 2),  # token, nodes
        ("gpus", 4),  # token, GPUs with node name, profiles, blocked intervals
        ("profiles", 2),
        ("reservations", 2),
        ("decisions", 2),
        (f"gpus/{GPUS[0]}/map", 5),  # token, GPU, profiles, blocked intervals, reservations
        ("fragmentation", 5),
        ("alerts", 2),
        ("drift", 2),
        ("samples", 2),
        ("reconciliations", 2),
        ("worker", 4),  # token, and one for each part
        ("pods/team/a/why", 3),
        ("usage?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z", 2),
    ],
)
def test_an_answer_takes_a_fixed_number_of_queries(
    client: Client, path, queries, django_assert_num_queries
) -> None:
    assert live_gpus().count() == 4
    with django_assert_num_queries(queries):
        assert client.get(f"/api/v1/{path}").status_code == 200


@pytest.mark.parametrize(
    ("at", "states"),
    [
        ("2026-01-01T00:00:05Z", ["free"] * 4 + ["blocked"] + ["free"] * 2),
        ("2026-01-01T00:00:10Z", ["realized", "free", "reserved", "blocked", "free", "free"]),
    ],
)
def test_a_map_tells_of_any_moment(client: Client, at, states) -> None:
    found = client.get(f"/api/v1/gpus/{GPUS[0]}/map", {"at": at}).json()["intervals"]
    assert [item["state"] for item in found] == states


def test_a_map_of_the_past_has_what_is_over_since(client: Client) -> None:
    url = f"/api/v1/gpus/{GPUS[2]}/map"
    then = client.get(url, {"at": "2026-01-01T00:30:00Z"}).json()["intervals"]
    assert [(item["pod"], item["state"], item["size"]) for item in then] == [("c", "reserved", 8)]
    assert {item["state"] for item in client.get(url).json()["intervals"]} == {"free"}
