"""The list of namespaces, and one namespace in full."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import DatabaseError, connection
from django.test import Client
from django.utils import timezone

from hami_web.dashboard.cluster_map import ClusterMap, WaitingPod
from hami_web.dashboard.holdings import all_holdings
from hami_web.history.conditions import AlertCode
from hami_web.history.models import Alert
from hami_web.reservations.models import MigReservation, Phase
from hami_web.reservations.usage import usage_between

from .given import GivenMap
from .samples import cluster_map
from .test_drawing import GPU, IDENTITY, drawn, node, pod

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _cluster(live: GivenMap) -> None:
    known = drawn([node()], [pod("a", 0, 1, IDENTITY), pod("b", 4, 4)])
    waiting = (WaitingPod("team/late", "0/1 nodes are available"), WaitingPod("other/late", ""))
    live.show(ClusterMap(2, known.nodes, waiting, known.records))


def used(namespace: str, hours: float, **more) -> MigReservation:
    now = timezone.now()
    values = {
        "pod_uid": f"{namespace}-{hours}", "namespace": namespace, "pod": "earlier", "node": "n1",
        "container_index": 0, "device_index": 0, "gpu_uuid": GPU, "profile": "3g.20gb",
        "start": 0, "size": 4, "gpu_memory_slices": 8, "phase": Phase.RELEASED,
        "reserved_at": now - timedelta(hours=hours + 1), "changed_at": now,
        "released_at": now - timedelta(hours=1),
    }  # fmt: skip
    return MigReservation.objects.create(**(values | more))


def lines(page: str) -> dict[str, list[str]]:
    """Cells of each namespace's line of the list, by name."""
    found = {}
    for line in re.findall(r"<tr><th scope=\"row\">.*?</tr>", page, re.DOTALL):
        cells = [re.sub(r"<[^>]+>", "", cell) for cell in line.split("</td>")[:-1]]
        name, _, first = cells[0].partition("</th>")
        name = re.search(r"namespaces/([\w-]+)\"", line)[1]
        found[name] = [first or cells[0].removeprefix(name), *cells[1:]]
    return found


def test_the_list_counts_what_each_namespace_has_waits_for_and_used(client: Client) -> None:
    used("team", 4.0)
    used("gone", 2.0)
    Alert.objects.create(
        code=AlertCode.CONFLICT, subject="x", namespace="team", text="t",
        raised_at=timezone.now(), seen_at=timezone.now(),
    )  # fmt: skip
    found = lines(client.get("/namespaces").content.decode())
    assert list(found) == ["gone", "other", "team"]
    assert found["team"] == ["2", "1", "5", "24\u202f960 MiB", "1", "2.00", "1"]
    assert found["gone"][5] == "1.00"
    assert found["other"][4] == "1"


def test_the_list_can_be_narrowed_by_name_and_time(client: Client) -> None:
    used("team", 4.0)
    used("long-ago", 1.0, reserved_at=timezone.now() - timedelta(days=6),
         released_at=timezone.now() - timedelta(days=5))  # fmt: skip
    assert "long-ago" not in lines(client.get("/namespaces").content.decode())
    assert "long-ago" in lines(client.get("/namespaces?days=7").content.decode())
    assert list(lines(client.get("/namespaces?q=tea").content.decode())) == ["team"]
    assert "Nothing matches" in client.get("/namespaces?q=none").content.decode()


def test_a_namespace_shows_what_it_has_with_pictures_and_why_its_pods_wait(client: Client) -> None:
    page = client.get("/namespaces/team").content.decode()
    assert page.count('<svg class="memory"') == 1
    assert "0/1 nodes are available" in page
    assert "other/late" not in page
    assert f'href="/gpus/{GPU}#' in page
    assert "team/a" in page
    assert "kubectl -n team get resourcequota" in page


def test_the_use_of_a_namespace_is_that_of_the_usage_api(client: Client) -> None:
    used("team", 4.0)
    used("other", 9.0)
    until = timezone.now()
    row = next(row for row in usage_between(until - timedelta(days=7), until)
               if row.namespace == "team")  # fmt: skip
    page = client.get("/namespaces/team").content.decode()
    assert f'<td class="amount">{row.gpu_hours:.2f}</td>' in page
    assert f'<td class="amount">{row.instance_hours:.2f}</td>' in page
    assert "4.50" not in page


def test_alerts_of_a_namespace_stand_on_its_page_with_what_helps(client: Client) -> None:
    now = timezone.now()
    for name in ("team", "other"):
        Alert.objects.create(
            code=AlertCode.UNREALIZED, subject=f"{name}/a", namespace=name, text=f"of {name}",
            raised_at=now, seen_at=now,
        )  # fmt: skip
    page = client.get("/namespaces/team").content.decode()
    assert "of team" in page
    assert "log of the node" in page
    assert "of other" not in page


def test_a_namespace_that_nobody_knows_is_not_found(client: Client) -> None:
    assert client.get("/namespaces/none").status_code == 404
    used("ended", 1.0, released_at=timezone.now() - timedelta(days=50),
         reserved_at=timezone.now() - timedelta(days=51))  # fmt: skip
    assert "It has no reservation now" in client.get("/namespaces/ended").content.decode()


@pytest.mark.parametrize(
    "path", ["/namespaces?days=2", "/namespaces/team?days=", "/namespaces?q=%00"]
)
def test_a_range_that_is_not_offered_is_refused(client: Client, path: str) -> None:
    assert client.get(path).status_code == 400


def test_what_may_not_be_seen_has_no_line_and_no_page(client: Client, settings) -> None:
    used("gone", 2.0)
    settings.ANONYMOUS_NAMESPACES = ("other",)
    page = client.get("/namespaces").content.decode()
    assert list(lines(page)) == ["other"]
    assert "team" not in page
    answer = client.get("/namespaces/team")
    assert answer.status_code == client.get("/namespaces/none").status_code == 403
    assert "team/a" not in answer.content.decode()


def test_without_the_database_the_cluster_is_shown_all_the_same(client: Client) -> None:
    def broken(*_: object) -> None:
        raise DatabaseError("gone")

    with connection.execute_wrapper(lambda *_: broken()):
        listing, page = client.get("/namespaces"), client.get("/namespaces/team")
        unknown = client.get("/namespaces/perhaps")
    for answer in (listing, page, unknown):
        assert answer.status_code == 200
        assert "The history cannot be read" in answer.content.decode()
    assert lines(listing.content.decode())["team"][5:] == ["\N{EN DASH}"] * 2


@pytest.mark.parametrize("path", ["/namespaces", "/namespaces/team"])
def test_before_the_cluster_is_known_the_pages_say_so(
    client: Client, live: GivenMap, path: str
) -> None:
    live._map = None
    answer = client.get(path)
    assert answer.status_code == 503
    assert "No data from the cluster yet" in answer.content.decode()


@pytest.mark.parametrize("path", ["/namespaces", "/namespaces/team"])
def test_a_page_is_two_queries_however_much_was_used(
    client: Client, path: str, django_assert_max_num_queries
) -> None:
    for number in range(30):
        used("team", 1.0 + number)
    with django_assert_max_num_queries(2):
        client.get(path)


def test_a_conflict_is_one_of_each_of_its_owners() -> None:
    shown = cluster_map()
    assert set(all_holdings(shown)) == {"team-a", "team-b", "team-c", "research", "ml", "web"}
    both = drawn([node()], [pod("a", 0, 2), pod("b", 1, 1)])
    held = all_holdings(both)["team"]
    assert held.memory_slices == sum(
        cell.placement.size for cell in both.rows[GPU].cells if "team/" in cell.pod
    )
