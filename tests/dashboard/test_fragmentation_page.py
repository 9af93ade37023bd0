"""Fragmentation: one number, where it comes from, and its history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from hami_web.core.fragmentation import fragmentation
from hami_web.dashboard.curve import POINTS_MAX, draw_curve
from hami_web.dashboard.room import Heat, cluster_heat, node_heats, room_lines
from hami_web.history.models import Sample

from .given import GivenMap
from .test_drawing import GPU, IDENTITY, drawn, node, pod

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _scattered(live: GivenMap) -> None:
    """Two instances that block both places of 3g.20gb although half the GPU is free."""
    live.show(drawn([node()], [pod("a", 0, 1, IDENTITY), pod("b", 4, 1, IDENTITY)]))


def sample(at: datetime, value: float, name: str = "") -> None:
    Sample.objects.create(
        at=at, node=name, gpus=2, memory_slices=16, reserved_memory_slices=2,
        realized_memory_slices=2, blocked_memory_slices=0, fragmentation=value,
    )  # fmt: skip


def test_the_number_is_the_cores_own(live: GivenMap) -> None:
    current = live.current()
    gpus = [gpu for record in current.records.values() for gpu in record.open_gpus]
    measured = fragmentation((gpu.table, gpu.state) for gpu in gpus)
    assert cluster_heat(current).value == measured.value > 0
    assert [line.room for line in room_lines(current)] == list(reversed(measured.rooms))


def test_a_gpu_alone_is_worse_off_than_the_cluster(live: GivenMap) -> None:
    heats = {gpu.uuid: gpu.heat for gpu in node_heats(live.current())[0].gpus}
    assert heats[GPU].value > 0
    assert [heat.words for uuid, heat in heats.items() if uuid != GPU] == ["0 %"]


def test_a_closed_gpu_has_no_number(live: GivenMap) -> None:
    live.show(drawn([node()], [pod("a", 0, 2), pod("b", 1, 1)]))
    heats = {gpu.uuid: gpu.heat.words for gpu in node_heats(live.current())[0].gpus}
    assert heats[GPU] == "\N{EN DASH}"


@pytest.mark.parametrize(
    ("value", "level"),
    [(None, "none"), (0.0, "0"), (0.19, "0"), (0.2, "1"), (0.99, "4"), (1.0, "4")],
)
def test_heat_has_five_steps_and_a_word(value: float | None, level: str) -> None:
    assert Heat(value).level == level


def test_the_page_lists_room_heat_and_history_in_one_query(
    client: Client, django_assert_num_queries
) -> None:
    now = timezone.now()
    sample(now - timedelta(hours=2), 0.25)
    sample(now - timedelta(hours=1), 0.5)
    sample(now - timedelta(hours=1), 0.9, "n1")
    sample(now - timedelta(days=8), 0.99)
    with django_assert_num_queries(1):
        page = client.get("/fragmentation").content.decode()
    assert "2 samples of the whole cluster: least 25 %, most 50 %, newest 50 %" in page
    assert f"Since {now - timedelta(hours=2):%Y-%m-%d %H:%M} UTC" in page
    assert f'href="/gpus/{GPU}"' in page
    assert "3g.20gb" in page


def test_without_samples_the_page_says_who_takes_them(client: Client) -> None:
    assert "The worker takes one each minute." in client.get("/fragmentation").content.decode()


def test_a_curve_keeps_the_highest_of_many_samples() -> None:
    since = datetime(2026, 1, 1, tzinfo=UTC)
    until = since + timedelta(days=7)
    step = (until - since) / 10_000
    points = [(since + step * n, 0.8 if n == 5000 else 0.1) for n in range(10_000)]
    curve = draw_curve(points, since, until)
    assert (curve.count, curve.least, curve.most) == (10_000, 0.1, 0.8)
    line = curve.picture.partition("<polyline")[2]
    assert line.count(",") <= POINTS_MAX
    assert ",32 " in line


def test_a_cluster_where_nothing_takes_work_says_so(client: Client, live: GivenMap) -> None:
    silent = node()
    silent.status.conditions = []
    live.show(drawn([silent], []))
    assert "No GPU takes new work" in client.get("/fragmentation").content.decode()
