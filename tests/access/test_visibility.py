"""What one may not see has no name: in pages, fragments, streams, lists, files and totals."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
from dataclasses import replace

import pytest
from django.test import Client

from hami_web.access.audit import SYSTEM
from hami_web.access.caller import Caller, KubernetesUser, Source
from hami_web.access.models import ApiToken
from hami_web.access.roles import Role
from hami_web.access.tokens import TokenGrant, create_token
from hami_web.access.visibility import Visibility
from hami_web.api.serializers.hiding import Hiding
from hami_web.dashboard.cells import CellState
from hami_web.dashboard.cluster_map import ClusterMap
from hami_web.dashboard.events import SeenChanges, stream_changes
from hami_web.dashboard.live import Change
from hami_web.dashboard.seen import hide_unseen
from hami_web.history.models import Alert, Drift, DriftCause, Reconciliation
from hami_web.history.refusals import ObservedRefusal, note_refusals
from hami_web.inventory.models import Node
from hami_web.simulator.identity import AccessRule
from tests.dashboard.conftest import GivenMap
from tests.dashboard.samples import cell, cluster_map, row
from tests.mirror.observations import GPUS, moment

from .conftest import sign_in

HIDDEN = re.compile(r"team-[bc]|research|\bml/|\bweb/|notebook|finetune|etl-|eval-|ocr-|train-9")


def only(*namespaces: str) -> Visibility:
    return Visibility(Caller("x", Source.LOCAL, Role.VIEWER, frozenset(namespaces)))


def every() -> Visibility:
    return Visibility(Caller("x", Source.LOCAL, Role.VIEWER, None))


def viewer(*namespaces: str) -> Client:
    """A program whose token sees these namespaces."""
    name = f"viewer of {namespaces}"
    ApiToken.objects.filter(name=name).delete()
    token = create_token(name, TokenGrant(namespaces=namespaces), by=SYSTEM)
    return Client(headers={"host": "localhost", "authorization": f"Bearer {token}"})


# --- the map ---


def test_taken_memory_slices_stay_taken_without_a_name() -> None:
    shown = hide_unseen(cluster_map(), only("team-a"))
    first = shown.nodes[0].rows[0]
    assert [(str(each.placement), each.state, each.pod) for each in first.cells] == [
        ("0:1", CellState.REALIZED, "team-a/inference-0"),
        ("1:1", CellState.REALIZED, "team-a/inference-1"),
        ("2:2", CellState.UNAVAILABLE, ""),
        ("4:4", CellState.UNAVAILABLE, ""),
    ]
    assert all(
        (each.profile, each.detail, each.memory_mib) == ("", "", 0) for each in first.cells[2:]
    )


def test_totals_count_what_is_shown() -> None:
    whole, shown = cluster_map(), hide_unseen(cluster_map(), only("team-a"))
    assert (whole.instance_count, shown.instance_count) == (6, 3)
    assert shown.memory_slices == whole.memory_slices
    taken = sum(shown.memory_slices_in(s) for s in CellState if s is not CellState.FREE)
    assert taken == whole.memory_slices - whole.memory_slices_in(CellState.FREE)
    assert shown.waiting == ()


def test_two_maps_of_one_version_are_not_taken_for_each_other() -> None:
    whole = cluster_map()
    half = replace(whole, nodes=whole.nodes[:1])
    assert len(hide_unseen(whole, only("team-a")).nodes) == 3
    assert len(hide_unseen(half, only("team-a")).nodes) == 1


def test_whoever_sees_every_namespace_sees_the_very_map() -> None:
    whole = cluster_map()
    assert hide_unseen(whole, every()) is whole


def test_a_conflict_is_named_only_to_those_who_see_all_its_owners() -> None:
    both = cell(0, 2, CellState.CONFLICTED, pod="team-a/x, team-b/y")
    shown = ClusterMap(1, (replace(cluster_map().nodes[0], rows=(row("n", 0, [both]),)),))
    for seen, state in ((only("team-a"), "unavailable"), (only("team-a", "team-b"), "conflicted")):
        assert hide_unseen(shown, seen).nodes[0].rows[0].cells[0].state == state


def test_texts_that_are_no_codes_are_hidden() -> None:
    block = replace(cluster_map().nodes[0], notes=("stale", "Pod team-b/y: cannot be read", "x"))
    shown = hide_unseen(ClusterMap(2, (block,)), only("team-a"))
    assert shown.nodes[0].notes == ("stale", "unavailable")


@pytest.mark.django_db
@pytest.mark.usefixtures("live", "ann")
@pytest.mark.parametrize("path", ["/", "/?view=table", "/fragments/summary"])
def test_no_page_names_what_is_hidden(browser: Client, path: str) -> None:
    sign_in(browser)
    text = browser.get(path).content.decode()
    assert "unavailable" in text
    assert not HIDDEN.search(text)
    for uuid in cluster_map().rows:
        assert not HIDDEN.search(browser.get(f"/fragments/gpus/{uuid}").content.decode())


# --- the stream ---


def test_the_stream_tells_only_of_changes_that_can_be_seen(live: GivenMap) -> None:
    def shown(version: int, *pods: str) -> None:
        cells = [cell(at, 1, CellState.BOUND, "1g.5gb", pod) for at, pod in enumerate(pods)]
        rows = (row("n", 0, cells[:1]), row("n", 1, cells[1:]))
        live.show(ClusterMap(version, (replace(cluster_map().nodes[0], name="n", rows=rows),)))

    async def scenario() -> list[tuple[int, Change | None]]:
        changes = SeenChanges(live, only("team-a"))
        shown(10, "team-a/x")
        found = [await changes.since(10)]
        shown(11, "team-a/x", "team-b/y")
        found.append(await changes.since(10))
        shown(12, "team-a/x", "team-b/z")
        found.append(await changes.since(11))
        shown(13, "team-a/w", "team-b/z")
        found.append(await changes.since(11))
        return found

    assert asyncio.run(scenario()) == [
        (10, None),
        (11, Change(11, ("GPU-n-1-5f0c",))),  # free before, now unavailable
        (12, None),
        (13, Change(13, ("GPU-n-0-5f0c",))),
    ]


def test_a_page_whose_map_is_not_known_fetches_everything(live: GivenMap) -> None:
    changes = SeenChanges(live, only("team-a"))
    assert asyncio.run(changes.since(3)) == (7, Change(7, ("*",)))


def test_a_stream_that_ends_as_planned_says_so(live: GivenMap) -> None:
    async def scenario() -> list[str]:
        changes = SeenChanges(live, only("team-a"))
        return [event async for event in stream_changes(live, 7, changes, life_s=0.05)]

    assert asyncio.run(scenario())[-1] == "event: again\ndata: {}\n\n"


# --- the API ---


@pytest.fixture
def _mirrored(mirror) -> None:
    Node.objects.filter(name="n1").update(doubts=["Pod other/c: cannot be read"])
    note_refusals([ObservedRefusal("u", "other", "c", "0/2 full")], seen_at=moment(5))
    run = Reconciliation.objects.create(
        began_at=moment(0), finished_at=moment(1), nodes=2, pods=3, corrections=1
    )
    Drift.objects.create(
        reconciliation=run,
        at=moment(0),
        cause=DriftCause.ALTERED,
        kind="missing",
        entity="reservation",
        key="other/c",
        detail="other/c 7g.40gb",
    )


PATHS = [
    *("nodes", "gpus", "profiles", "reservations", "alerts", "drift", "reconciliations"),
    *("samples", "fragmentation", f"gpus/{GPUS[0]}/map", f"gpus/{GPUS[2]}/map"),
    "usage?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z",
]


@pytest.mark.usefixtures("_mirrored", "live", "ann")
@pytest.mark.parametrize("path", ["/alerts", "/alerts?show=all", "/drift", "/fragmentation"])
def test_pages_of_the_mirror_name_nothing_hidden_either(browser: Client, path: str) -> None:
    raised = {"raised_at": moment(0), "seen_at": moment(0)}
    Alert.objects.create(code="ForeignInstance", subject="GPU-0 4:2", text="of other/c", **raised)
    Alert.objects.create(
        code="ReservationNotRealized", subject="u", namespace="other", text="other/c", **raised
    )
    sign_in(browser)
    answer = browser.get(path)
    assert answer.status_code == 200
    assert "other/c" not in answer.content.decode()


@pytest.mark.usefixtures("_mirrored")
@pytest.mark.parametrize("form", ["json", "csv"])
@pytest.mark.parametrize("path", PATHS)
def test_no_answer_names_what_is_hidden(path: str, form: str) -> None:
    answer = viewer("elsewhere").get(f"/api/v1/{path}{'&' if '?' in path else '?'}format={form}")
    assert answer.status_code == 200
    text = answer.content.decode()
    assert not re.search(r"\bother\b|\bteam\b|\bpod-|MIG-|foreign", text), text


@pytest.mark.usefixtures("_mirrored")
def test_a_drawing_shows_that_and_not_by_whom_memory_slices_are_taken() -> None:
    drawing = viewer("elsewhere").get(f"/api/v1/gpus/{GPUS[0]}/map.svg").content.decode()
    assert "unavailable 0:1" in drawing
    assert not re.search("team|MIG-|1g.5gb|foreign", drawing)


@pytest.mark.usefixtures("_mirrored")
def test_lists_hold_the_rows_of_visible_namespaces_alone() -> None:
    client = viewer("other")
    found = client.get("/api/v1/reservations").json()["results"]
    assert {each["namespace"] for each in found} == {"other"}
    rows = csv.DictReader(
        io.StringIO(client.get("/api/v1/reservations?format=csv").content.decode())
    )
    assert [each["pod"] for each in rows] == ["c"]
    usage = client.get(f"/api/v1/{PATHS[-1]}").json()["results"]
    assert {each["namespace"] for each in usage} == {"other"}


@pytest.mark.usefixtures("_mirrored")
@pytest.mark.parametrize("query", ["pod=c", "namespace=other", "gpu_uuid=GPU-2", "live=false"])
def test_filters_cannot_guess_at_hidden_rows(query: str) -> None:
    path = f"/api/v1/reservations?{query}"
    assert viewer("other").get(path).json()["results"] != []
    assert viewer("team").get(path).json()["results"] == []


@pytest.mark.usefixtures("_mirrored")
@pytest.mark.parametrize("namespace", ["other", "no-such-namespace"])
def test_a_hidden_namespace_is_refused_whether_it_exists_or_not(namespace: str) -> None:
    answer = viewer("team").get(f"/api/v1/pods/{namespace}/c/why")
    assert (answer.status_code, answer.json()["code"]) == (403, "namespace.unavailable")
    found = viewer("other").get("/api/v1/pods/other/c/why").json()["results"]
    assert [each["message"] for each in found] == ["0/2 full"]


@pytest.mark.usefixtures("_mirrored")
def test_answers_are_kept_by_nobody_else() -> None:
    answer = viewer("team").get("/api/v1/nodes")
    assert "private" in answer["Cache-Control"]
    assert {"Authorization", "Cookie"} <= {each.strip() for each in answer["Vary"].split(",")}


def test_a_serializer_without_a_caller_hides() -> None:
    class Shape(Hiding):
        hidden = ("text", "texts")
        context: dict[str, object] = {}

    class Base:
        def to_representation(self, instance: object) -> dict[str, object]:
            return {"text": "secret", "texts": ["secret"], "empty": ""}

    shown = type("S", (Shape, Base), {})().to_representation(None)
    assert json.dumps(shown) == '{"text": "unavailable", "texts": ["unavailable"], "empty": ""}'


# --- the cluster's rules ---


def reviewed(name: str, *groups: str) -> Visibility:
    user = KubernetesUser(name, groups)
    return Visibility(Caller(name, Source.KUBERNETES, Role.VIEWER, None, user))


@pytest.mark.usefixtures("cluster")
def test_a_kubernetes_user_sees_where_the_cluster_lets_them_list_pods() -> None:
    seen = reviewed("ann", "team-a")
    assert not seen.everything
    assert seen.among(["team-a", "team-b"]) == {"team-a"}
    assert seen.sees("team-a")
    assert not seen.sees("team-b")
    assert reviewed("root", "system:masters").everything


def test_answers_are_remembered_for_their_time(cluster, settings) -> None:
    def reviews() -> int:
        return sum(each.resource == "subjectaccessreviews" for each in cluster.audit)

    seen = reviewed("ann", "team-a")
    seen.among(["team-a", "team-b"])
    asked = reviews()
    assert asked == 3  # everywhere, and each of the two
    reviewed("ann", "team-a").among(["team-a", "team-b"])
    assert reviews() == asked


def test_without_an_answer_nothing_is_seen(cluster) -> None:
    cluster.stop()
    seen = reviewed("root", "system:masters")
    assert not seen.everything
    assert seen.among(["team-a"]) == frozenset()


def test_without_a_cluster_nothing_is_seen(settings, tmp_path) -> None:
    settings.KUBECONFIG = tmp_path / "none"
    assert not reviewed("root", "system:masters").sees("team-a")


@pytest.mark.usefixtures("cluster", "mirror")
def test_a_cluster_token_reads_the_api_by_the_clusters_rules(cluster) -> None:
    cluster.identities.rules.append(AccessRule("ann", ("list",), "pods", namespace="team"))
    client = Client(headers={"host": "localhost", "authorization": "Bearer ann"})
    found = client.get("/api/v1/reservations").json()["results"]
    assert {each["namespace"] for each in found} == {"team"}
    root = Client(headers={"host": "localhost", "authorization": "Bearer root"})
    assert len(root.get("/api/v1/reservations").json()["results"]) == 3
