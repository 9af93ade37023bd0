"""Single objects, their links, and their entity tags."""

from __future__ import annotations

import pytest
from django.test import Client

from hami_web.access.audit import SYSTEM
from hami_web.access.roles import Role
from hami_web.access.tokens import TokenGrant, create_token
from hami_web.history.models import Alert, Drift, Reconciliation
from hami_web.inventory.models import Gpu
from hami_web.reservations.models import MigReservation
from tests.mirror.observations import GPUS, moment

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("mirror")]


@pytest.fixture
def addresses(db) -> dict[str, str]:
    """One object of each kind."""
    alert = Alert.objects.create(
        code="X", subject="s", namespace="team", text="t", raised_at=moment(1), seen_at=moment(1)
    )
    run = Reconciliation.objects.create(
        began_at=moment(1), finished_at=moment(2), nodes=1, pods=1, corrections=1
    )
    drift = Drift.objects.create(
        reconciliation=run, at=moment(1), cause="first", kind="missing", entity="gpu", key="g"
    )
    return {
        "node": "nodes/n1",
        "gpu": f"gpus/{GPUS[0]}",
        "reservation": f"reservations/{MigReservation.objects.get(pod='a').pk}",
        "alert": f"alerts/{alert.pk}",
        "drift": f"drift/{drift.pk}",
        "reconciliation": f"reconciliations/{run.pk}",
    }


KINDS = ("node", "gpu", "reservation", "alert", "drift", "reconciliation")


@pytest.mark.parametrize("kind", KINDS)
def test_an_object_is_its_row_of_the_list_with_links_that_lead_somewhere(
    client: Client, addresses, kind
) -> None:
    one = client.get(f"/api/v1/{addresses[kind]}").json()
    links = one.pop("links")
    listed = client.get(f"/api/v1/{addresses[kind].partition('/')[0]}").json()["results"]
    assert one in listed
    assert links
    for name, link in links.items():
        wanted = 405 if name in ("cordon", "uncordon", "acknowledge") else 200
        assert client.get(link).status_code == wanted, link


@pytest.mark.parametrize("kind", KINDS)
def test_its_tag_changes_with_it_and_not_with_the_fields_asked_for(
    client: Client, addresses, kind
) -> None:
    url = f"/api/v1/{addresses[kind]}"
    first = client.get(url)
    assert client.get(url, headers={"if-none-match": first["ETag"]}).status_code == 304
    less = client.get(f"{url}?fields=links")
    assert (list(less.json()), less["ETag"]) == (["links"], first["ETag"])


def test_another_state_has_another_tag(client: Client, addresses) -> None:
    url = f"/api/v1/{addresses['gpu']}"
    before = client.get(url)["ETag"]
    Gpu.objects.update(healthy=False)
    assert client.get(url)["ETag"] != before


@pytest.mark.parametrize(
    "path",
    ["nodes/none", "nodes/%00", "gpus/GPU-none", "gpus/%00/map", "reservations/99",
     "reservations/99999999999999999999", "alerts/99", "drift/99", "reconciliations/99",
     "decisions/99", "nothing", "alerts/a%0Ab", "nothing/at/all", "reservations/x"],
)  # fmt: skip
def test_what_is_not_there_is_a_problem_404(client: Client, path: str) -> None:
    answer = client.get(f"/api/v1/{path}")
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")
    assert answer.json()["code"] == "request.not_found"


def test_what_may_not_be_seen_is_not_there(client: Client, addresses) -> None:
    grant = TokenGrant(Role.VIEWER, namespaces=frozenset({"other"}))
    token = create_token("other", grant, by=SYSTEM)
    stranger = Client(headers={"host": "localhost", "authorization": f"Bearer {token}"})
    for kind in ("reservation", "alert"):
        assert stranger.get(f"/api/v1/{addresses[kind]}").status_code == 404
        assert client.get(f"/api/v1/{addresses[kind]}").status_code == 200


def test_an_object_is_also_csv(client: Client) -> None:
    answer = client.get("/api/v1/nodes/n1?format=csv&fields=name,unschedulable")
    assert answer.content.decode().splitlines() == ["name,unschedulable", "n1,False"]
