"""What all lists share."""

from __future__ import annotations

import csv
import io

import pytest
from django.test import Client

from hami_web.api.parameters import LIMIT_DEFAULT
from hami_web.core.placement import Placement
from hami_web.core.reservation import Reservation
from hami_web.history.models import Alert, Drift, Reconciliation, Sample
from hami_web.inventory.mirror import mirror_nodes
from hami_web.reservations.mirror import mirror_pods
from tests.mirror.observations import gpu, moment, node, pod

pytestmark = pytest.mark.django_db
MANY = LIMIT_DEFAULT + 10
LISTS = ("nodes", "gpus", "reservations", "alerts", "drift", "reconciliations", "samples")
QUERIES = {
    "gpus": 4
}  # token, GPUs with nodes, profiles, blocked memory slices; others: token, rows


@pytest.fixture(autouse=True)
def many_rows(db) -> None:
    """More rows of each kind than a page has."""
    numbers = range(MANY)
    nodes = [node(f"n{n}", (gpu(f"G{n}"),)) for n in numbers]
    mirror_nodes(nodes, seen_at=moment(0), now=moment(0))
    places = [Reservation(0, 0, f"G{n}", "1g.5gb", Placement(0, 1)) for n in numbers]
    pods = [pod(f"p{n}", place, node=f"n{n}") for n, place in enumerate(places)]
    mirror_pods(pods, seen_at=moment(1), now=moment(1))
    run = Reconciliation.objects.bulk_create(
        Reconciliation(began_at=moment(n), finished_at=moment(n), nodes=1, pods=1, corrections=0)
        for n in numbers
    )[0]
    Drift.objects.bulk_create(
        Drift(
            reconciliation=run, at=moment(n), cause="first", kind="missing", entity="gpu", key="k"
        )
        for n in numbers
    )
    Alert.objects.bulk_create(
        Alert(code="X", subject=f"s{n}", text="t", raised_at=moment(n), seen_at=moment(n))
        for n in numbers
    )
    Sample.objects.bulk_create(
        Sample(
            at=moment(n), gpus=1, memory_slices=8, reserved_memory_slices=0,
            realized_memory_slices=0, blocked_memory_slices=0, fragmentation=0,
        )
        for n in numbers
    )  # fmt: skip


@pytest.mark.parametrize("name", LISTS)
def test_a_page_has_fifty_rows_or_as_many_as_asked_for(client: Client, name: str) -> None:
    first = client.get(f"/api/v1/{name}").json()
    assert len(first["results"]) == LIMIT_DEFAULT
    rest = client.get(first["next"]).json()
    assert (len(rest["results"]), rest["next"]) == (MANY - LIMIT_DEFAULT, None)
    assert not [row for row in rest["results"] if row in first["results"]]
    assert len(client.get(f"/api/v1/{name}?limit=7").json()["results"]) == 7
    assert client.get(f"/api/v1/{name}?limit=501").status_code == 400


@pytest.mark.parametrize("name", LISTS)
def test_a_page_takes_as_many_queries_whatever_its_size(
    client: Client, name, django_assert_num_queries
) -> None:
    for limit in (1, 60):
        with django_assert_num_queries(QUERIES.get(name, 2)):
            client.get(f"/api/v1/{name}?limit={limit}")


@pytest.mark.parametrize("name", LISTS)
def test_a_list_is_csv_with_the_same_rows_and_unchanged_304(client: Client, name: str) -> None:
    rows = client.get(f"/api/v1/{name}?limit=5").json()["results"]
    answer = client.get(f"/api/v1/{name}?limit=5&format=csv")
    table = list(csv.reader(io.StringIO(answer.content.decode())))
    assert table[0] == list(rows[0])
    assert len(table) == 6
    headers = {"if-none-match": answer["ETag"]}
    assert client.get(f"/api/v1/{name}?limit=5&format=csv", headers=headers).status_code == 304


@pytest.mark.parametrize("name", LISTS)
def test_an_unknown_parameter_field_or_order_is_400(client: Client, name: str) -> None:
    for query in ("nonsense=1", "fields=nonsense", "ordering=nonsense"):
        answer = client.get(f"/api/v1/{name}?{query}")
        assert (answer.status_code, answer.json()["code"]) == (400, "request.parameter.invalid")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("gpus?q=g1", 11),
        ("gpus?q=A100&limit=500", MANY),
        ("reservations?q=P59", 1),
        ("gpus?memory_mib__gte=40961", 0),
        ("gpus?memory_mib__gte=40960&memory_mib__lte=40960&limit=500", MANY),
        ("profiles?memory_mib__lte=9984", 2),
        ("profiles?compute_slices__gte=3", 2),
        ("gpus?cordoned=true", 0),
    ],
)
def test_names_are_found_by_a_part_and_sizes_by_their_bounds(client: Client, query, found) -> None:
    assert len(client.get(f"/api/v1/{query}").json()["results"]) == found
