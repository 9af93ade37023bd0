"""Forms of the pages: done once, recorded, and only by those who may."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone

from hami_web.access.models import AuditEntry
from hami_web.core import annotations as keys
from hami_web.history.conditions import AlertCode
from hami_web.history.models import Alert, AlertState
from hami_web.simulator.client import ApiClient, Endpoint
from hami_web.simulator.server import SimulatedApiServer, write_kubeconfig

from .given import GivenMap
from .test_drawing import GPU, REGISTER, drawn, node

pytestmark = pytest.mark.django_db
NODE = "/api/v1/nodes/n1"


@pytest.fixture(autouse=True)
def _operator(settings, live: GivenMap) -> None:
    settings.ANONYMOUS_ROLE = "operator"
    live.show(drawn([node()], []))


@pytest.fixture
def api(settings, tmp_path: Path) -> Iterator[ApiClient]:
    """A real HTTP API server with the node of the map."""
    with SimulatedApiServer() as server:
        client = ApiClient(Endpoint(server.url))
        register = {keys.NODE_REGISTER: REGISTER.read_text().strip()}
        client.create("/api/v1/nodes", {"metadata": {"name": "n1", "annotations": register}})
        settings.KUBECONFIG = write_kubeconfig(tmp_path / "kubeconfig", server=server.url)
        yield client
        client.close()


def cordoned(api: ApiClient) -> str:
    return api.get(NODE)["metadata"]["annotations"].get(keys.NODE_DEVICE_CORDON, "")


def an_alert(**more) -> Alert:
    now = timezone.now()
    values = {"text": "t", "raised_at": now, "seen_at": now, "subject": "n1"} | more
    return Alert.objects.create(code=AlertCode.AGENT_STALE, **values)


def test_a_gpu_is_cordoned_and_uncordoned_with_a_record(client: Client, api: ApiClient) -> None:
    assert client.post(f"/gpus/{GPU}/cordon", {"note": "fan"}).status_code == 302
    assert cordoned(api) == GPU
    assert client.post(f"/gpus/{GPU}/uncordon").status_code == 302
    assert cordoned(api) == ""
    entries = AuditEntry.objects.filter(name=GPU).order_by("pk").values_list("verb", "outcome")
    assert list(entries) == [
        ("gpu.cordon", "begun"),
        ("gpu.cordon", "done"),
        ("gpu.uncordon", "begun"),
        ("gpu.uncordon", "done"),
    ]
    assert AuditEntry.objects.get(verb="gpu.cordon", outcome="done").detail == "fan"


def test_a_gpu_that_the_map_does_not_have_is_not_touched(client: Client, api: ApiClient) -> None:
    assert client.post("/gpus/GPU-none/cordon").status_code == 404
    assert cordoned(api) == ""


def test_an_api_server_that_is_away_is_told_and_recorded(
    client: Client, settings, tmp_path
) -> None:
    with SimulatedApiServer() as server:
        settings.KUBECONFIG = write_kubeconfig(tmp_path / "kubeconfig", server=server.url)
    response = client.post(f"/gpus/{GPU}/cordon")
    assert response.status_code == 409
    assert "Not done" in response.content.decode()
    assert AuditEntry.objects.filter(verb="gpu.cordon", outcome="failed").exists()


def test_an_alert_is_acknowledged_by_who_says_so(client: Client) -> None:
    alert = an_alert()
    response = client.post(f"/alerts/{alert.pk}/acknowledge", {"note": "ticket 7"})
    assert response.url.endswith(f"#alert-{alert.pk}")
    alert.refresh_from_db()
    assert (alert.state, alert.note) == (AlertState.ACKNOWLEDGED, "ticket 7")
    assert AuditEntry.objects.filter(verb="alert.acknowledge", outcome="done").count() == 1


def test_an_alert_that_is_over_cannot_be_acknowledged(client: Client) -> None:
    alert = an_alert(state=AlertState.RESOLVED, resolved_at=timezone.now())
    assert client.post(f"/alerts/{alert.pk}/acknowledge").status_code == 409
    assert client.post("/alerts/999999/acknowledge").status_code == 404


def test_a_form_without_its_token_changes_nothing(api: ApiClient) -> None:
    strict = Client(enforce_csrf_checks=True, headers={"host": "localhost"})
    assert strict.post(f"/gpus/{GPU}/cordon").status_code == 403
    assert cordoned(api) == ""


def test_forms_are_offered_only_to_those_who_may(client: Client, settings) -> None:
    an_alert()
    assert "Cordon: no new work" in client.get(f"/gpus/{GPU}").content.decode()
    assert "I know of it" in client.get("/alerts").content.decode()
    settings.ANONYMOUS_ROLE = "viewer"
    assert "Cordon: no new work" not in client.get(f"/gpus/{GPU}").content.decode()
    assert "I know of it" not in client.get("/alerts").content.decode()
    assert client.post(f"/gpus/{GPU}/cordon").status_code in (302, 403)
