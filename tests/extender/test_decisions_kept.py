"""Decisions of a running extender outlive it: read over HTTP, stored, continued after a restart."""

from __future__ import annotations

import signal

import pytest

from hami_web.history.models import Decision
from hami_web.reservations.models import MigReservation
from hami_web.sync.decisions import (
    DecisionClient,
    DecisionReader,
    ExtenderAddress,
    ExtenderUnavailable,
)
from tests.extender.test_scheduling import wait_for_node

pytestmark = pytest.mark.django_db


@pytest.fixture
def reader_of():
    clients = []

    def make(extender):
        client = DecisionClient(ExtenderAddress(f"http://127.0.0.1:{extender.port}"))
        clients.append(client)
        return DecisionReader(client, hold_s=60)

    yield make
    for client in clients:
        client.close()


def test_reasons_and_holds_are_kept_across_a_killed_extender(start_extender, cluster, reader_of):
    extender = start_extender()
    extender.wait_ready()
    cluster.gpu_node("n1")
    wait_for_node(extender, cluster)
    first, second = (cluster.pod(name, gpumem="40000") for name in ("first", "second"))
    extender.filter(first, "n1")
    extender.filter(second, "n1")
    reader = reader_of(extender)
    reader.turn()
    row = Decision.objects.get(pod="second")
    assert (row.outcome, row.times) == ("refused", 1)
    [node] = row.explanation.body["nodes"]
    assert node["gpus"][0]["code"] == "CardInsufficientMemory"
    held = MigReservation.objects.get(pod="first")
    assert (held.phase, held.profile, held.size) == ("held", "7g.40gb", 8)

    extender.stop(signal.SIGKILL)
    with pytest.raises(ExtenderUnavailable):
        reader.turn()
    fresh = start_extender()
    fresh.wait_ready(30)
    wait_for_node(fresh, cluster)
    fresh.filter(second, "n1")
    reader_of(fresh).turn()
    held.refresh_from_db()
    assert held.phase == "lapsed"
    second_row = MigReservation.objects.get(pod="second")
    assert (second_row.phase, second_row.start) == ("held", 0)
    assert Decision.objects.filter(pod="second").count() == 2


def test_a_standby_and_what_is_no_extender_are_told_apart_from_an_answer(
    extender, start_extender, reader_of
):
    standby = start_extender()
    with pytest.raises(ExtenderUnavailable):
        reader_of(standby).turn()
