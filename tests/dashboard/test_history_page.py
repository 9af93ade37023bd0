"""The past as a picture, and what changed since."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest
from django.db import DatabaseError, connection
from django.test import Client
from django.utils import timezone

from hami_web.core.errors import InvalidField
from hami_web.dashboard.cells import CellState
from hami_web.dashboard.history_wording import CHANGES
from hami_web.dashboard.moments import parse_moment, written
from hami_web.dashboard.past import past_map
from hami_web.history.changes import _STEPS, ENTITIES
from hami_web.inventory.models import BlockedState, Gpu, GpuState, Node, NodeState, ProfileSet
from hami_web.reservations.models import MigReservation, Phase

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("live")]

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
UUID = "GPU-past"


def ago(minutes: float) -> datetime:
    return timezone.now() - timedelta(minutes=minutes)


@pytest.fixture
def _recorded() -> None:
    """A node seen two hours ago; one Pod an hour ago, for half an hour."""
    node = Node.objects.create(name="n1", changed_at=ago(120))
    profiles = ProfileSet.objects.create(digest="d")
    facts = {"index": 0, "mode": "mig", "healthy": True, "memory_slices": 8}
    gpu = Gpu.objects.create(
        uuid=UUID, node=node, model="NVIDIA A100-SXM4-40GB", memory_mib=40960, core_percent=100,
        numa=0, changed_at=ago(120), profile_set=profiles, **facts,
    )  # fmt: skip
    NodeState.objects.create(
        node=node, began_at=ago(120), change="appeared", doubts=[], unschedulable=False
    )
    GpuState.objects.create(
        gpu=gpu, node=node, profile_set=profiles, began_at=ago(120), change="appeared",
        cordoned=False, **facts,
    )  # fmt: skip
    BlockedState.objects.create(
        gpu=gpu, start=6, size=1, reason="foreign", began_at=ago(50), ended_at=ago(40),
        change="appeared", is_last=True,
    )  # fmt: skip
    MigReservation.objects.create(
        pod_uid="u", namespace="team", pod="a", node="n1", container_index=0, device_index=0,
        gpu_uuid=UUID, profile="2g.10gb", start=2, size=2, phase=Phase.RELEASED,
        mig_uuid="MIG-1", gpu_instance_id=3, compute_instance_id=0, reserved_at=ago(60),
        realized_at=ago(55), terminating_at=ago(35), released_at=ago(30), changed_at=ago(30),
    )  # fmt: skip


def states(minutes: float) -> dict[str, CellState]:
    row = past_map(ago(minutes)).rows[UUID]
    return {str(c.placement): c.state for c in row.cells if c.state is not CellState.FREE}


@pytest.mark.usefixtures("_recorded")
def test_each_moment_shows_what_was_there_then() -> None:
    assert states(90) == {}
    assert states(58) == {"2:2": CellState.BOUND}
    assert states(45) == {"2:2": CellState.REALIZED, "6:1": CellState.BLOCKED}
    assert states(33) == {"2:2": CellState.TERMINATING}
    assert states(10) == {}


@pytest.mark.usefixtures("_recorded")
def test_a_mig_uuid_is_not_shown_before_it_existed() -> None:
    (early,) = [c for c in past_map(ago(58)).rows[UUID].cells if c.pod]
    (late,) = [c for c in past_map(ago(45)).rows[UUID].cells if c.pod]
    assert (early.detail, late.detail) == ("", "MIG-1")


@pytest.mark.usefixtures("_recorded")
def test_the_page_draws_the_moment_and_lists_what_changed_since(client: Client) -> None:
    at = ago(45).isoformat()
    page = client.get("/history", {"at": at}).content.decode()
    assert '<a class="cell realized ' in page
    assert "the placement became free" in page
    assert "memory slices are no longer blocked" in page
    assert "the instance was made" not in page


@pytest.mark.usefixtures("_recorded")
def test_the_past_hides_what_its_reader_may_not_see(client: Client, settings) -> None:
    settings.ANONYMOUS_NAMESPACES = ("elsewhere",)
    page = client.get("/history", {"at": ago(45).isoformat()}).content.decode()
    assert '<a class="cell unavailable ' in page
    assert "team" not in page


@pytest.mark.usefixtures("_recorded")
def test_the_number_of_queries_does_not_grow_with_what_was_there(
    client: Client, django_assert_num_queries
) -> None:
    for number in range(20):
        MigReservation.objects.create(
            pod_uid=f"x{number}", namespace="team", pod=f"x{number}", node="n1", start=0, size=1,
            container_index=0, device_index=0, gpu_uuid=UUID, profile="1g.5gb",
            phase=Phase.RELEASED, reserved_at=ago(50), released_at=ago(40), changed_at=ago(40),
        )  # fmt: skip
    with django_assert_num_queries(5):
        client.get("/history", {"at": ago(45).isoformat()})


def test_a_moment_without_records_says_so(client: Client) -> None:
    page = client.get("/history").content.decode()
    assert "Nothing is known of that moment" in page
    assert "Nothing changed." in page


def test_the_slider_leads_to_an_address_that_can_be_kept(client: Client) -> None:
    response = client.get("/history?ago=90")
    assert response.status_code == 302
    moment = parse_moment(response.url.partition("at=")[2].replace("%3A", ":"), timezone.now())
    assert abs(moment - ago(90)) < timedelta(seconds=30)


@pytest.mark.parametrize(
    "text",
    [
        "yesterday",
        "2026-05-04",
        "2026-05-04T10:00:00",
        "2026-05-04T13:00:00Z",
        "2020-01-01T00:00:00Z",
    ],
)
def test_a_moment_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(InvalidField, match="at: "):
        parse_moment(text, NOW)


@pytest.mark.parametrize("query", ["at=soon", "ago=-1", "ago=1441", "ago=x"])
def test_a_question_that_means_nothing_is_refused(client: Client, query: str) -> None:
    assert client.get(f"/history?{query}").status_code == 400


def test_every_kind_of_change_has_words() -> None:
    steps = {f"reservation {step}" for step, *_ in _STEPS}
    states = {
        f"{entity} {change}"
        for entity in ENTITIES
        if entity != "reservation"
        for change in ("appeared", "changed", "gone")
    }
    assert set(CHANGES) == steps | states


def test_without_the_database_the_page_says_so(client: Client) -> None:
    def broken(*_: object) -> None:
        raise DatabaseError("gone")

    with connection.execute_wrapper(lambda *_: broken()):
        response = client.get("/history")
    assert response.status_code == 503
    assert "The history cannot be read" in response.content.decode()


@pytest.mark.usefixtures("_recorded")
@pytest.mark.parametrize("address", [f"/gpus/{UUID}", "/nodes/n1"])
def test_a_gpu_and_a_node_can_be_seen_as_they_were(client: Client, address: str) -> None:
    moment = ago(45).isoformat().replace("+00:00", "Z")
    page = client.get(address, {"at": moment}).content.decode()
    assert "As it was at" in page
    assert "team/a" in page
    assert page.count('<svg class="memory"') == 1
    before = client.get(address, {"at": ago(90).isoformat()}).content.decode()
    assert "team/a" not in before
    assert client.get(address, {"at": ago(600).isoformat()}).status_code == 404
    assert client.get(address, {"at": "yesterday"}).status_code == 400


@pytest.mark.usefixtures("_recorded")
def test_links_of_the_past_stay_in_the_past(client: Client) -> None:
    moment = written(ago(45))
    kept = urlencode({"at": moment})
    page = client.get("/history", {"at": moment}).content.decode()
    for link in (f"/gpus/{UUID}?{kept}", f"/nodes/n1?{kept}", f"/gpus/{UUID}?{kept}#{UUID}-2"):
        assert f'href="{link}"' in page, link
    page = client.get("/nodes/n1", {"at": moment}).content.decode()
    assert f'href="/gpus/{UUID}?{kept}"' in page
    assert f'href="/history?{kept}"' in page


@pytest.mark.usefixtures("_recorded")
def test_the_past_of_a_gpu_hides_what_may_not_be_seen(client: Client, settings) -> None:
    settings.ANONYMOUS_NAMESPACES = ("other",)
    page = client.get(f"/gpus/{UUID}", {"at": written(ago(45))}).content.decode()
    assert "team/a" not in page
    assert "unavailable" in page


@pytest.mark.parametrize("address", [f"/gpus/{UUID}", "/nodes/n1"])
def test_a_past_that_cannot_be_read_says_so(client: Client, address: str) -> None:
    def broken(*_: object) -> None:
        raise DatabaseError("gone")

    with connection.execute_wrapper(lambda *_: broken()):
        answer = client.get(address, {"at": written(ago(45))})
    assert answer.status_code == 503
    assert "The history cannot be read" in answer.content.decode()


@pytest.mark.usefixtures("_recorded")
@pytest.mark.parametrize("address", [f"/gpus/{UUID}", "/nodes/n1"])
def test_the_past_is_four_queries(client: Client, address: str, django_assert_num_queries) -> None:
    with django_assert_num_queries(4):
        client.get(address, {"at": written(ago(45))})
