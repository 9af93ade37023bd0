"""The page of a node's take-over: what it shows, and the forms of its steps."""

from __future__ import annotations

import pytest
from django.test import Client

from hami_web.handover.lifecycle import TrialState
from hami_web.handover.models import EventKind, NodeHandover, Outcome
from hami_web.handover.obstacles import ObstacleCode
from hami_web.handover.steps import FORWARD, Step
from hami_web.handover.wording import EVENTS, MENDS, OUTCOMES, STEPS, TRIALS, mend_of
from tests.mirror.observations import moment

from .given import GivenMap
from .handovers import under_way

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _admin(settings, live: GivenMap) -> None:
    settings.ANONYMOUS_ROLE = "admin"


@pytest.fixture
def handover(db) -> NodeHandover:
    return under_way(moment(3))


def text(client: Client, path: str, status: int = 200) -> str:
    answer = client.get(path)
    assert answer.status_code == status, answer.content[-2000:]
    return answer.content.decode()


def test_it_shows_the_way_what_is_in_it_and_what_approving_would_do(client, handover) -> None:
    shown = text(client, f"/migration/nodes/{handover.pk}")
    assert shown.count('<li class="passed">') == 2
    assert 'aria-current="step"' in shown
    assert shown.count('<li class="ahead">') == len(FORWARD) - 3
    assert "<code>evict team-a/train</code>" in shown
    assert "kubectl drain n1" in shown
    assert "It fell back from “Publish the capability” to “Drain legacy Pods”" in shown
    assert "its Pod ended" in shown
    assert "3.5 s" in shown
    assert "Approve: Drain legacy Pods" in shown


def test_its_forms_approve_withdraw_turn_back_and_close(client, handover) -> None:
    path = f"/migration/nodes/{handover.pk}"
    assert client.post(f"{path}/approve", {"step": "cordon"}).status_code == 409
    assert client.post(f"{path}/approve", {"step": "drain"}).status_code == 302
    assert "Withdraw the approval" in text(client, path)
    assert client.post(f"{path}/withdraw", {"step": "drain"}).status_code == 302
    assert client.post(f"{path}/turn-back").status_code == 302
    assert "Back: cordon" in text(client, path)
    assert client.post(f"{path}/close").status_code == 302
    assert "Approve" not in text(client, path)
    assert client.post(f"{path}/close").status_code == 409
    assert client.post("/migration/nodes/999/close").status_code == 404


def test_the_page_of_moving_in_lists_nodes_on_their_way(client, handover) -> None:
    shown = text(client, "/migration")
    assert f'href="/migration/nodes/{handover.pk}"' in shown
    assert "Begin" in shown
    handover.delete()
    assert "No node is on its way" in text(client, "/migration")


def test_who_may_not_lead_sees_no_form_and_who_sees_little_no_pod(
    client, settings, handover
) -> None:
    settings.ANONYMOUS_ROLE = "viewer"
    shown = text(client, f"/migration/nodes/{handover.pk}")
    assert "Approve" not in shown
    refused = client.post(f"/migration/nodes/{handover.pk}/close")
    assert refused["Location"].startswith("/login")


def test_a_bad_name_or_direction_begins_nothing(client) -> None:
    for form in ({"node": ""}, {"node": "a/b"}, {"node": "n1", "direction": "up"}):
        assert client.post("/migration/nodes/start", form).status_code == 400
    assert not NodeHandover.objects.exists()


def test_a_pod_that_is_left_to_its_owner_is_named_as_kubectl_takes_it() -> None:
    words = mend_of("NotEvictedByUs", "n1", "Pod team-a/alone")
    assert words.endswith("kubectl delete pod -n team-a alone")
    assert "{" not in words


def test_everything_that_can_happen_has_words() -> None:
    assert set(STEPS) == set(Step)
    assert set(MENDS) == set(ObstacleCode)
    assert set(OUTCOMES) == set(Outcome.values)
    assert set(EVENTS) == set(EventKind.values)
    assert set(TRIALS) == set(TrialState)
