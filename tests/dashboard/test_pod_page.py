"""Why a Pod waits, what it has, and what it had."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.db import DatabaseError, connection
from django.test import Client
from django.utils import timezone

from hami_web.core.reasons import Reason
from hami_web.dashboard.cluster_map import ClusterMap, WaitingPod
from hami_web.dashboard.moments import written
from hami_web.dashboard.wording import OUTCOME_WORDS, PHASE_WORDS, REASON_WORDS
from hami_web.history.models import Decision, Explanation, Outcome
from hami_web.reservations.models import MigReservation, Phase

from .filled import BODY, fill_tables
from .given import GivenMap
from .test_drawing import GPU, IDENTITY, drawn, node, pod

pytestmark = pytest.mark.django_db

REASON = "0/1 nodes are available: 1 2/2 CardMigTopologyInfeasible."


@pytest.fixture(autouse=True)
def _cluster(live: GivenMap) -> None:
    known = drawn([node()], [pod("a", 0, 1, IDENTITY), pod("b", 4, 1)])
    waiting = (WaitingPod("team/waits", REASON),)
    live.show(ClusterMap(2, known.nodes, waiting, known.records))


@pytest.fixture
def refusal() -> Decision:
    now = timezone.now()
    explanation = Explanation.objects.create(digest="d", body=BODY)
    return Decision.objects.create(
        pod_uid="u1", namespace="team", pod="waits", outcome=Outcome.REFUSED, digest="d",
        message="no available node", explanation=explanation, times=3, entry="e", entry_times=3,
        first_at=now - timedelta(minutes=5), last_at=now,
    )  # fmt: skip


def test_every_reason_outcome_and_phase_has_words() -> None:
    assert set(REASON_WORDS) == set(Reason)
    assert set(OUTCOME_WORDS) == set(Outcome.values)
    assert set(Phase.values) | {"started"} == set(PHASE_WORDS)


@pytest.mark.usefixtures("refusal")
def test_a_waiting_pod_gets_a_sentence_first_then_each_gpu(client: Client) -> None:
    page = client.get("/pods/team/waits").content.decode()
    verdict = page.index("This Pod waits for a place")
    sentence = page.index("3g.20gb would fit at 4:4 on n1 without secret/owner.")
    table = page.index("Why no GPU takes it")
    assert verdict < sentence < table
    assert "2g.10gb (9\N{NARROW NO-BREAK SPACE}856 MiB) would have fitted on n1." in page
    assert "5 of 8 free" in page
    assert "NodeCapabilityStale" in page


@pytest.mark.usefixtures("refusal")
def test_who_is_in_the_way_is_named_only_to_those_who_may_see(client: Client, settings) -> None:
    settings.ANONYMOUS_NAMESPACES = ("team",)
    page = client.get("/pods/team/waits").content.decode()
    assert "without unavailable." in page
    assert "secret" not in page


def test_without_an_explanation_the_schedulers_words_are_shown(client: Client) -> None:
    assert REASON in client.get("/pods/team/waits").content.decode()


@pytest.mark.usefixtures("refusal")
def test_every_attempt_is_kept_and_counted(client: Client) -> None:
    page = client.get("/pods/team/waits").content.decode()
    assert "no available node" in page
    assert '<td class="amount">3</td>' in page


def test_a_running_pod_shows_its_gpu_and_the_steps_of_its_life(
    client: Client, django_assert_num_queries
) -> None:
    now = timezone.now()
    MigReservation.objects.create(
        pod_uid="a", namespace="team", pod="a", node="n1", container_index=0, device_index=0,
        gpu_uuid=GPU, profile="1g.5gb", start=0, size=1, phase=Phase.REALIZED,
        mig_uuid="MIG-1", gpu_instance_id=3, compute_instance_id=0,
        held_at=now - timedelta(seconds=9), reserved_at=now - timedelta(seconds=8),
        realized_at=now - timedelta(seconds=6), started_at=now - timedelta(seconds=1),
        changed_at=now,
    )  # fmt: skip
    with django_assert_num_queries(4):
        page = client.get("/pods/team/a").content.decode()
    assert page.count('<article class="gpu"') == 1
    for taken in ("after 1.0 s", "after 2.0 s", "after 5.0 s"):
        assert taken in page


@pytest.mark.parametrize("path", ["/pods/team/none", "/pods/other/a", "/pods/team/%3Cb%3E"])
def test_a_pod_that_nobody_knows_is_not_found(client: Client, path: str) -> None:
    response = client.get(path)
    assert response.status_code == 404
    assert "<b>" not in response.content.decode().split("<main")[1]


def test_a_pod_of_a_hidden_namespace_is_refused_like_one_that_is_not_there(
    client: Client, settings
) -> None:
    settings.ANONYMOUS_NAMESPACES = ("elsewhere",)
    hidden, absent = client.get("/pods/team/a"), client.get("/pods/team/none")
    assert hidden.status_code == absent.status_code == 403
    for answer in (hidden, absent):
        assert "This namespace is unavailable to you." in answer.content.decode()


def test_without_the_database_the_cluster_still_answers(client: Client) -> None:
    def broken(*_: object) -> None:
        raise DatabaseError("gone")

    with connection.execute_wrapper(lambda *_: broken()):
        response = client.get("/pods/team/a")
    assert response.status_code == 200
    assert "The history cannot be read" in response.content.decode()
    assert "1g.5gb" in response.content.decode()


def test_a_pod_can_be_seen_as_it_was(client: Client) -> None:
    """What it had and had been told by then; what came later is not told."""
    fill_tables(1)
    now = timezone.now()
    Decision.objects.filter(pod="waits").update(first_at=now - timedelta(minutes=50))
    moments = {minutes: written(now - timedelta(minutes=minutes)) for minutes in (20, 45, 70)}
    path = "/pods/team-0/gone0"
    had = client.get(path, {"at": moments[45]}).content.decode()
    assert had.count('<svg class="memory"') == 1
    assert "As it was at" in had
    assert f'href="{path}?{urlencode({"at": moments[45]})}"' in had
    assert "<b>released</b>" not in had
    after = client.get(path, {"at": moments[20]}).content.decode()
    assert "This Pod had nothing then" in after
    assert "<b>released</b>" in after
    assert client.get(path, {"at": moments[70]}).status_code == 404
    assert client.get(path, {"at": "soon"}).status_code == 400
    waited = client.get("/pods/team/waits", {"at": moments[45]}).content.decode()
    assert "no available node" in waited
    assert "after this moment" in waited
    assert 'href="?at=' in client.get("/pods/team/waits").content.decode()


def test_the_past_of_a_pod_that_cannot_be_read_says_so(client: Client) -> None:
    def broken(*_: object) -> None:
        raise DatabaseError("gone")

    with connection.execute_wrapper(lambda *_: broken()):
        answer = client.get("/pods/team/a", {"at": written(timezone.now())})
    assert answer.status_code == 503
    assert "The history cannot be read" in answer.content.decode()
