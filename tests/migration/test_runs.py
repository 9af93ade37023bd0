"""A check is a row: taken once, told of as it goes, stored whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from hami_web.cluster.errors import Forbidden
from hami_web.cluster.views import OwnedMeta
from hami_web.migration import runs
from hami_web.migration.facts import ClusterFacts, Part
from hami_web.migration.models import Finding, MigrationRun, NodeReadiness, RunState
from hami_web.migration.objects import CheckedNode
from hami_web.migration.runs import Step

pytestmark = pytest.mark.django_db


def now() -> datetime:
    return datetime.now(UTC)


def claimed() -> MigrationRun:
    runs.request_check("ann", now())
    run = runs.claim_check(now())
    assert run is not None
    return run


def facts(step: Step, _node: str) -> ClusterFacts:
    for part in Part:
        step(part)
    gpu_node = CheckedNode(OwnedMeta(name="gpu-1", labels={"gpu": "on"}))
    return ClusterFacts("hami-system", nodes=(gpu_node,))


def state(run: MigrationRun) -> MigrationRun:
    return MigrationRun.objects.get(pk=run.pk)


def test_a_finished_check_has_its_nodes_and_findings() -> None:
    run = claimed()
    runs.perform_check(run, facts)
    ended = state(run)
    assert (ended.state, ended.parts_done, ended.parts) == ("finished", len(Part), len(Part))
    assert NodeReadiness.objects.get(run=run).node == "gpu-1"
    assert "AgentMissing" in Finding.objects.filter(run=run).values_list("code", flat=True)


def test_progress_is_told_part_by_part() -> None:
    run = claimed()
    seen = []

    def gather(step: Step, _node: str) -> ClusterFacts:
        for part in Part:
            step(part)
            row = state(run)
            seen.append((row.part, row.parts_done))
        return ClusterFacts("hami-system")

    runs.perform_check(run, gather)
    assert seen == [(part.value, index) for index, part in enumerate(Part)]


def test_only_one_check_goes_on_and_only_one_worker_takes_it() -> None:
    runs.request_check("ann", now())
    with pytest.raises(runs.CheckGoesOn):
        runs.request_check("bob", now())
    assert runs.claim_check(now()) is not None
    assert runs.claim_check(now()) is None
    with pytest.raises(runs.CheckGoesOn):
        runs.request_check("bob", now())


def test_a_check_whose_worker_died_is_taken_again_and_the_late_one_stores_nothing() -> None:
    run = claimed()
    later = now() + runs.SILENT_AFTER + timedelta(seconds=1)
    again = runs.claim_check(later)
    assert again is not None
    assert again.pk == run.pk
    runs.perform_check(run, facts)
    assert state(run).state == RunState.RUNNING
    assert not Finding.objects.exists()
    runs.perform_check(again, facts)
    assert state(run).state == RunState.FINISHED


def test_a_worker_that_tells_of_itself_keeps_its_check() -> None:
    run = claimed()
    MigrationRun.objects.filter(pk=run.pk).update(seen_at=now() + runs.SILENT_AFTER)
    assert runs.claim_check(now() + runs.SILENT_AFTER + timedelta(seconds=1)) is None


def test_a_cancelled_check_stops_at_its_next_part_and_keeps_nothing() -> None:
    run = claimed()
    looked = []

    def gather(step: Step, _node: str) -> ClusterFacts:
        for part in Part:
            step(part)
            looked.append(part)
            if part is Part.PODS:
                runs.cancel_check(run.pk, "bob", now())
        return ClusterFacts("hami-system")

    runs.perform_check(run, gather)
    assert looked[-1] is Part.PODS
    ended = state(run)
    assert (ended.state, ended.cancelled_by) == ("cancelled", "bob")
    assert not Finding.objects.exists()
    with pytest.raises(runs.NotRunning):
        runs.cancel_check(run.pk, "bob", now())


def fails(error: Exception) -> Callable[[Step, str], ClusterFacts]:
    def gather(_step: Step, _node: str) -> ClusterFacts:
        raise error

    return gather


@pytest.mark.parametrize(
    ("error", "words"),
    [(Forbidden("GET /version: 403"), "403"), (RuntimeError("x"), "a fault of ours")],
)
def test_a_check_that_fails_says_why_and_another_can_be_asked_for(
    error: Exception, words: str
) -> None:
    run = claimed()
    runs.perform_check(run, fails(error))
    ended = state(run)
    assert ended.state == RunState.FAILED
    assert words in ended.error
    assert runs.request_check("ann", now()).pk != run.pk


@pytest.mark.parametrize(
    ("node", "readiness", "exit_code"),
    [("gpu-1", "ready", 0), ("gpu-1", "not_ready", 1), ("absent", "", 1), ("", "ready", 0)],
)
def test_the_command_looks_at_one_node_where_it_is_named(
    node: str, readiness: str, exit_code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(_seconds: float) -> None:
        run = runs.claim_check(now())
        assert run is not None
        assert run.node == node
        MigrationRun.objects.filter(pk=run.pk).update(state="finished", finished_at=now())
        if readiness:
            facts_of = {"readiness": readiness, "checked_at": now()}
            NodeReadiness.objects.create(run=run, node="gpu-1", **facts_of)

    monkeypatch.setattr("time.sleep", work)
    told = StringIO()
    left = 0
    try:
        call_command("check_migration", "--node", node, stdout=told, stderr=StringIO())
    except SystemExit as error:
        left = int(error.code or 0)
    assert left == exit_code
    assert bool(readiness) == ("gpu-1: " in told.getvalue())


def test_the_command_joins_no_check_of_another_node_and_takes_no_odd_name() -> None:
    runs.request_check("ann", now(), "gpu-1")
    with pytest.raises(CommandError, match="of node gpu-1 is requested; try again"):
        call_command("check_migration")
    with pytest.raises(CommandError, match="node: 'a,b' is not allowed"):
        call_command("check_migration", "--node", "a,b")
