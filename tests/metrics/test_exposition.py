"""The text is what prometheus_client reads and writes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from hami_web.metrics import table
from hami_web.metrics.exposition import render
from hami_web.metrics.series import Family, Kind, Series, single
from hami_web.scheduling.measures import BUCKETS_S, Durations

SERIES = Series("one", Kind.GAUGE, "One.", ("a", "b"))
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from('\\"\n'))
NUMBER = st.floats(allow_nan=False) | st.integers(-(2**60), 2**60)


@given(st.dictionaries(st.tuples(TEXT, TEXT), NUMBER))
def test_every_label_and_value_is_read_back(values):
    text = render([Family(SERIES, list(values.items()))]).decode()
    [family] = text_string_to_metric_families(text)
    read = {(s.labels["a"], s.labels["b"]): s.value for s in family.samples}
    assert read == {key: float(value) for key, value in values.items()}


def test_counters_and_histograms_are_written_as_prometheus_client_writes_them():
    registry = CollectorRegistry()
    counter = Counter(table.WOKEN.name, table.WOKEN.text, registry=registry)
    histogram = Histogram(
        table.REQUESTS.name,
        table.REQUESTS.text,
        table.REQUESTS.labels,
        buckets=BUCKETS_S,
        registry=registry,
    )
    durations = Durations()
    for seconds in (0.0001, 0.25, 7, 99):
        histogram.labels("GET", "a", "2xx").observe(seconds)
        durations.observe(seconds)
    counter.inc(3)
    labels = ("GET", "a", "2xx")
    ours = [
        single(table.WOKEN, 3),
        Family(table.REQUESTS, durations=[(labels, durations.snapshot())]),
    ]
    assert read(render(ours)) == read(generate_latest(registry))


def read(text):
    """Samples by name and labels; not when they were created, which we do not tell."""
    return {
        (family.name, family.type, s.name, tuple(sorted(s.labels.items()))): s.value
        for family in text_string_to_metric_families(text.decode())
        for s in family.samples
        if not s.name.endswith("_created")
    }


def test_a_text_that_is_no_unicode_does_not_cost_the_scrape():
    text = render([Family(SERIES, [(("\ud800", "b"), 1)])])
    assert text.endswith(b'one{a="\\ud800",b="b"} 1.0\n')
