"""Lists are read by getters, and show what their serializers would."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import get_resolver
from rest_framework import serializers
from rest_framework.renderers import JSONRenderer

from hami_web.api.json_answers import FastJsonRenderer
from hami_web.api.listing import ListView
from hami_web.api.parameters import LIMIT_DEFAULT, LIMIT_MAX
from hami_web.api.rows import read_rows
from hami_web.history.models import Alert
from hami_web.history.samples import take_sample
from hami_web.inventory.models import Node
from hami_web.reservations.models import MigReservation, Phase
from tests.mirror.observations import moment

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("mirror")]
SEES_ALL = {"visibility": SimpleNamespace(everything=True)}


def list_views() -> dict[str, type[ListView]]:
    """Every list of the API by its address, but for those below an object with a number."""
    found = {}
    for pattern in get_resolver("hami_web.api.urls").url_patterns:
        view = getattr(pattern.callback, "view_class", None)
        address = str(pattern.pattern)
        if view is not None and issubclass(view, ListView) and "<int:" not in address:
            found[address] = view
    return found


@pytest.mark.parametrize("address", sorted(list_views()))
def test_a_list_shows_what_its_serializer_says(client: Client, address: str) -> None:
    Node.objects.update(doubts=["Pod team/a: unreadable"])
    take_sample(moment(20))
    Alert.objects.create(
        code="AgentStale", subject="n1", text="x", raised_at=moment(0.25), seen_at=moment(0)
    )
    path = address.replace("<str:namespace>", "team").replace("<str:pod>", "a")
    path = path.replace("<str:uuid>", "GPU-0")
    answer = client.get(f"/api/{path}")
    assert answer.status_code == 200, answer.content
    view = list_views()[address]()
    view.kwargs = {"namespace": "team", "pod": "a", "uuid": "GPU-0"}
    shown = view.serializer_class(view.rows(), many=True, context=SEES_ALL).data
    assert answer.json()["results"] == json.loads(JSONRenderer().render(shown))


def test_a_serializer_with_ways_of_its_own_is_refused() -> None:
    class Odd(serializers.Serializer):
        name = serializers.CharField()

        def to_representation(self, instance):
            return {"name": "x"}

    with pytest.raises(TypeError, match="Odd"):
        read_rows([SimpleNamespace(name="a")], Odd(), ["name"])


def test_the_renderer_writes_what_drf_writes() -> None:
    data = {"a": [1, 2.5, None, True, "ü"], "at": moment(0.5), "phase": Phase.HELD, "none": None}
    ours = json.loads(FastJsonRenderer().render(data))
    assert ours == json.loads(JSONRenderer().render(data))
    assert ours["at"] == "2026-01-01T00:00:00.500000Z"


def test_pages_hold_fifty_rows_unless_asked_and_never_more_than_500(client: Client) -> None:
    facts = {"namespace": "n", "pod": "p", "node": "n1", "gpu_uuid": "g", "profile": "1g.5gb"}
    MigReservation.objects.bulk_create(
        MigReservation(
            **facts,
            pod_uid=str(number),
            container_index=0,
            device_index=0,
            start=0,
            size=1,
            phase=Phase.RELEASED,
            reserved_at=moment(0),
            released_at=moment(1),
            changed_at=moment(1),
        )
        for number in range(LIMIT_MAX + 10)
    )

    def size(query: str) -> int:
        return len(client.get(f"/api/v1/reservations{query}").json()["results"])

    assert (LIMIT_DEFAULT, LIMIT_MAX) == (50, 500)
    assert (size(""), size("?limit=500"), size("?limit=7")) == (50, 500, 7)
    assert client.get("/api/v1/reservations?limit=501").status_code == 400
