"""The pages of one GPU and one node, over a cluster state as the watches leave it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import DatabaseError, connection
from django.test import Client
from django.utils import timezone

from hami_web.core import annotations as keys
from hami_web.core.blocked import BlockedInterval, encode_blocked
from hami_web.core.placement import Placement
from hami_web.dashboard.legal_placements import lanes, profile_lines
from hami_web.dashboard.occupation import Stay, draw
from hami_web.reservations.models import MigReservation, Phase

from .given import GivenMap
from .test_drawing import GPU, IDENTITY, drawn, node, pod

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _cluster(live: GivenMap) -> None:
    live.show(drawn([node()], [pod("a", 0, 1, IDENTITY), pod("b", 4, 4)]))


def stay(**more) -> MigReservation:
    now = timezone.now()
    values = {
        "pod_uid": "u1", "namespace": "team", "pod": "earlier", "node": "n1", "container_index": 0,
        "device_index": 0, "gpu_uuid": GPU, "profile": "2g.10gb", "start": 2, "size": 2,
        "phase": Phase.RELEASED, "reserved_at": now - timedelta(hours=5),
        "realized_at": now - timedelta(hours=5) + timedelta(seconds=3),
        "released_at": now - timedelta(hours=2), "changed_at": now,
    }  # fmt: skip
    return MigReservation.objects.create(**(values | more))


def test_a_gpu_page_shows_what_is_on_it_and_what_fits(client: Client) -> None:
    page = client.get(f"/gpus/{GPU}").content.decode()
    assert "team/a" in page
    assert "MIG-1" in page
    assert GPU in page
    assert page.count('<svg class="legal"') == 4


def test_each_legal_placement_says_whether_it_fits_or_who_has_it(live: GivenMap) -> None:
    current = live.current()
    row = current.rows[GPU]
    lines = {line.name: line for line in profile_lines(current.gpu_record(row), row)}
    assert lines["1g.5gb"].now == 3
    assert lines["3g.20gb"].now == 0
    assert "0:4: taken by team/a" in lines["3g.20gb"].picture
    assert "4:4: taken by team/b" in lines["3g.20gb"].picture
    assert "2:2: fits" in lines["2g.10gb"].picture


def test_nothing_fits_on_a_gpu_that_takes_no_new_work(live: GivenMap) -> None:
    live.show(drawn([node()], [pod("a", 0, 2), pod("b", 1, 1)]))
    current = live.current()
    row = current.rows[GPU]
    lines = profile_lines(current.gpu_record(row), row)
    assert {line.now for line in lines} == {None}
    assert not any('class="fits"' in line.picture for line in lines)


def test_overlapping_placements_of_a_profile_are_drawn_in_lanes() -> None:
    overlapping = [Placement(0, 4), Placement(2, 2), Placement(4, 4), Placement(3, 1)]
    assert lanes(overlapping) == [
        [Placement(0, 4), Placement(4, 4)],
        [Placement(2, 2)],
        [Placement(3, 1)],
    ]


def test_a_gpu_page_is_four_queries_and_names_who_was_there(
    client: Client, django_assert_num_queries
) -> None:
    stay()
    stay(pod_uid="u2", pod="elsewhere", gpu_uuid="GPU-other")
    long_ago = timezone.now() - timedelta(days=3)
    stay(pod_uid="u3", pod="long-ago", reserved_at=long_ago, realized_at=None,
         released_at=long_ago + timedelta(hours=1))  # fmt: skip
    with django_assert_num_queries(4):
        page = client.get(f"/gpus/{GPU}").content.decode()
    assert "team/earlier" in page
    assert "3.0 s" in page
    assert "elsewhere" not in page
    assert "long-ago" not in page


def test_a_history_that_cannot_be_read_leaves_the_rest_of_the_page(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise DatabaseError("gone")

    with connection.execute_wrapper(lambda *_: broken()):
        response = client.get(f"/gpus/{GPU}")
    assert response.status_code == 200
    assert "the database does not answer" in response.content.decode()
    assert "team/a" in response.content.decode()


def test_the_strip_places_stays_by_time_and_memory_slice() -> None:
    until = datetime(2026, 1, 2, tzinfo=UTC)
    since = until - timedelta(hours=24)
    begin = since + timedelta(hours=6)
    half = Stay("team/<b>", "3g.20gb", "4:4", 4, 4, begin, begin, begin + timedelta(hours=12))
    picture = draw([half], 8, since, until)
    assert 'x="25%" y="72" width="50%" height="72"' in picture
    assert "&lt;b&gt;" in picture
    assert "<b>" not in picture


def test_a_node_page_shows_gpus_and_the_profiles_they_offer(client: Client) -> None:
    page = client.get("/nodes/n1").content.decode()
    assert page.count('<article class="gpu"') == 2
    assert "0:1, 1:1, 2:1, 3:1, 4:1, 5:1, 6:1" in page
    assert "2 of 2 GPUs" in page


def test_a_node_that_blocks_memory_slices_shows_the_reason(client: Client, live: GivenMap) -> None:
    blocked = encode_blocked([BlockedInterval(GPU, Placement(2, 2), "foreign instance")])
    live.show(drawn([node(**{keys.NODE_MIG_BLOCKED: blocked})], []))
    assert "foreign instance" in client.get(f"/gpus/{GPU}").content.decode()


@pytest.mark.parametrize(
    ("language", "said"),
    [("en", "until it is stopped by its controller"), ("zh-hans", "在由其控制器停止该程序")],
)
def test_a_node_with_another_owner_names_its_sign_and_what_to_do(
    client: Client, live: GivenMap, language: str, said: str
) -> None:
    told = "Pod ops/m-x (MIG Manager)"
    live.show(drawn([node(**{keys.NODE_MIG_OWNER: told})], [pod("a", 0, 1)]))
    for path in ("/nodes/n1", "/"):
        page = client.get(path, headers={"accept-language": language}).content.decode()
        assert said in page
        assert told in page
        assert "team/a" in page


@pytest.mark.parametrize("path", ["/gpus/GPU-none", "/nodes/none", "/gpus/%3Cscript%3E"])
def test_what_the_cluster_does_not_have_is_not_found(client: Client, path: str) -> None:
    response = client.get(path)
    assert response.status_code == 404
    assert "The cluster has no" in response.content.decode()
    assert "<script>" not in response.content.decode().replace('<script type="module"', "")


@pytest.mark.parametrize("path", [f"/gpus/{GPU}", "/nodes/n1", "/fragmentation"])
def test_before_the_cluster_is_known_every_page_says_so(
    client: Client, live: GivenMap, path: str
) -> None:
    live._map = None
    response = client.get(path)
    assert response.status_code == 503
    assert "No data from the cluster yet" in response.content.decode()


def test_pages_link_to_each_other(client: Client) -> None:
    page = client.get("/").content.decode()
    addresses = set(re.findall(r'href="(/(?:gpus|nodes)/[^"]+)"', page))
    assert len(addresses) == 3
    assert {client.get(address).status_code for address in addresses} == {200}


def test_memory_slices_can_be_linked_to(client: Client) -> None:
    page = client.get(f"/gpus/{GPU}").content.decode()
    assert f'<a id="gpu-{GPU}-4:4" class="cell bound' in page
    assert f'href="#gpu-{GPU}-4:4"' in page
    assert f'<tr id="{GPU}-4"' in page


@pytest.mark.parametrize("path", [f"/gpus/{GPU}", "/nodes/n1", "/pods/team/earlier"])
def test_gpu_node_and_pod_say_how_many_gpu_hours_were_used(client: Client, path: str) -> None:
    stay(gpu_memory_slices=8)
    assert "<dd>0.75</dd>" in client.get(path).content.decode()


def mirrored(**more) -> None:
    stay(phase=Phase.RESERVED, released_at=None, realized_at=None, **more)


def compared(client: Client) -> dict[str, str]:
    page = client.get(f"/gpus/{GPU}").content.decode()
    table = page.partition('aria-label="Side by side"')[2].partition("</table>")[0]
    found = re.findall(r'row"><code>([\d:]+)</code>.*?class="mark-(\w+)">([^<]+)', table, re.DOTALL)
    return {place: word for place, mark, word in found if (mark == "good") == (word == "agree")}


def test_annotation_node_and_mirror_stand_side_by_side(client: Client) -> None:
    mig = {"mig_uuid": "MIG-1", "gpu_instance_id": 3, "compute_instance_id": 0}
    mirrored(pod_uid="a", pod="a", profile="1g.5gb", start=0, size=1, **mig)
    mirrored(pod_uid="b", pod="other", profile="3g.20gb", start=4, size=4)
    mirrored(pod_uid="c", pod="ghost", profile="1g.5gb", start=2, size=1)
    assert compared(client) == {
        "0:1": "agree",
        "4:4": "another Pod",
        "2:1": "only the mirror has it",
    }
    MigReservation.objects.all().delete()
    assert set(compared(client).values()) == {"the mirror lacks it"}


def test_side_by_side_names_nobody_who_may_not_be_seen(client: Client, settings) -> None:
    mirrored(pod_uid="a", pod="secret", profile="1g.5gb", start=0, size=1)
    settings.ANONYMOUS_NAMESPACES = ("other",)
    page = client.get(f"/gpus/{GPU}").content.decode()
    assert "secret" not in page
    assert "MIG-1" not in page
