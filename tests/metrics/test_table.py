"""The table of series: what processes expose is in it, documents hold it, and promtool likes it."""

from __future__ import annotations

from pathlib import Path

from hami_web.core.quota import NamespaceQuota
from hami_web.metrics import table
from hami_web.metrics.containers import ContainerCollector
from hami_web.metrics.exposition import render
from hami_web.metrics.legacy import LEGACY, under_old_names
from hami_web.metrics.occupancy import OccupancyCollector
from hami_web.metrics.problems import ProblemCollector
from hami_web.metrics.reference import reference
from hami_web.metrics.series import Family, Kind, Series, collect_all
from hami_web.scheduling.measures import Durations
from hami_web.scheduling.problems import ProblemCode, ReservationProblem
from hami_web.scheduling.records import PodIdentity
from tests.metrics.promtool import HAMI_COMPLAINTS, complaints, needs_promtool
from tests.metrics.test_hami_names import state

__all__ = ["state"]
ROOT = Path(__file__).parents[2]


def every() -> list[Series]:
    return [series for owned in table.OWNED.values() for series in owned]


def test_each_name_has_one_description_and_one_owner():
    names = [series.name for series in every()]
    watches = {table.SILENCE, table.LAST_LIST, table.RELISTS, table.FAILURES}
    assert {name for name in names if names.count(name) > 1} == {s.name for s in watches}
    assert not {s.name for s in LEGACY} & set(names)


def test_no_series_of_ours_is_labelled_with_what_grows_with_time():
    allowed = {"device_uuid", "mig_uuid", "node", "profile"}  # there as long as their objects
    for series in every():
        names_pods = series.hami or series in (table.PROBLEM, table.INSTANCE_POD)  # as Pods are
        for label in series.labels:
            assert "uid" not in label or label in allowed, series.name
            assert names_pods or label not in ("pod", "namespace", "container"), series.name


def test_what_the_collectors_say_has_the_labels_of_the_table(state):
    quotas = [NamespaceQuota("team-a", "q", 40000, 100)]
    collectors = (
        OccupancyCollector(state.snapshot),
        ContainerCollector(state.snapshot, lambda: quotas),
    )
    families = list(collect_all(collectors))
    for family in [*families, *under_old_names(families)]:
        for values, _ in family.rows:
            assert len(values) == len(family.series.labels), family.series.name


def test_series_go_with_what_they_tell_of(state):
    def count():
        collectors = (OccupancyCollector(state.snapshot), ContainerCollector(state.snapshot, list))
        return sum(len(family.rows) for family in collect_all(collectors))

    before = count()
    for uid in ("1", "2"):
        state.remove_pod(uid)
    assert count() < before
    state.remove_node("gpu-n1")
    assert count() == 6  # five phases and the orphans, all of nothing


def test_a_problem_names_its_pod_once_and_goes_when_it_is_mended():
    pod = PodIdentity("team-a", "odd", "uid-1")
    found = [
        ReservationProblem(pod, "n1", ProblemCode.MISPLACED, text, "GPU-1") for text in ("a", "b")
    ]
    [family] = ProblemCollector(lambda: found).collect()
    assert family.rows == [(("GPU-1", "team-a", "n1", "odd", "misplaced"), 1)]
    found.clear()
    [family] = ProblemCollector(lambda: found).collect()
    assert family.rows == []


def test_the_document_holds_the_table():
    """Written anew by: python -m hami_web.metrics.reference"""
    text = (ROOT / "docs" / "metrics.md").read_text()
    assert text.endswith(reference())


def linted(series) -> dict[str, str]:
    """What promtool finds wrong, by name."""
    families = [
        Family(
            item,
            rows=[(tuple("x" * len(item.labels)), 1)],
            durations=[(tuple("x" * len(item.labels)), Durations().snapshot())],
        )
        for item in series
    ]
    return complaints(render(families))


@needs_promtool
def test_promtool_finds_fault_with_hamis_names_alone():
    assert set(linted(dict.fromkeys(every()))) == HAMI_COMPLAINTS


@needs_promtool
def test_promtool_finds_nothing_wrong_with_old_names_but_their_style():
    for name, complaint in linted(LEGACY).items():
        assert "camelCase" in complaint or "snake_case" in complaint, (name, complaint)


def test_a_histogram_has_no_rows_and_others_no_durations(state):
    for family in OccupancyCollector(state.snapshot).collect():
        assert bool(family.durations) <= (family.series.kind is Kind.HISTOGRAM)
