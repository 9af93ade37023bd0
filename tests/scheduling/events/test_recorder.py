"""Events: one per Pod and text, counted, bounded."""

from __future__ import annotations

import threading
import time

import pytest

from hami_web.cluster.errors import NotFound, ServerFailed
from hami_web.scheduling.events import NOTE_MAX, EventLimits, EventReason, EventRecorder, Regarding

POD = Regarding("team-a", "job", "u1")
FAILED = EventReason.FILTERING_FAILED


class Writer:
    def __init__(self):
        self.created = []
        self.patched = []
        self.errors = []
        self.blocked = threading.Event()
        self.blocked.set()

    def create_event(self, event):
        self.blocked.wait(5)
        if self.errors:
            raise self.errors.pop(0)
        self.created.append(event)

    def patch_event(self, event):
        if self.errors:
            raise self.errors.pop(0)
        self.patched.append(event)


@pytest.fixture
def writer():
    return Writer()


@pytest.fixture
def recorder(writer):
    made = []

    def make(**limits):
        limits = {"per_second": 10_000, "repeat_every_s": 0.05} | limits
        recorder = EventRecorder(writer, "extender-a", limits=EventLimits(**limits))
        recorder.start()
        made.append(recorder)
        return recorder

    yield make
    writer.blocked.set()
    for one in made:
        one.stop()


def eventually(condition, within_s=5.0):
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_an_event_has_all_that_the_api_demands(recorder, writer):
    recorder().record(POD, FAILED, "no available node")
    eventually(lambda: writer.created)
    [event] = writer.created
    document = dict(event.document)
    assert document.pop("eventTime").endswith("Z")
    name = document["metadata"]["name"]
    assert name.startswith("job.")
    assert document == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "team-a"},
        "reportingController": "hami.io/scheduler",
        "reportingInstance": "extender-a",
        "action": "Filter",
        "reason": "FilteringFailed",
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "team-a",
            "name": "job",
            "uid": "u1",
        },
        "note": "no available node",
        "type": "Warning",
    }


def test_repetitions_are_counted_in_one_event(recorder, writer):
    events = recorder()
    for _ in range(500):
        events.record(POD, FAILED, "no available node")
    eventually(lambda: writer.created)
    time.sleep(0.2)
    events.record(POD, FAILED, "no available node")
    eventually(lambda: writer.patched and writer.patched[-1].document["series"]["count"] == 501)
    assert len(writer.created) == 1
    assert {event.name for event in writer.patched} == {writer.created[0].name}
    assert len(writer.patched) < 10


def test_another_text_reason_or_pod_is_another_event(recorder, writer):
    events = recorder()
    events.record(POD, FAILED, "a")
    events.record(POD, FAILED, "b")
    events.record(POD, EventReason.BINDING_FAILED, "a")
    events.record(Regarding("team-a", "job", "u2"), FAILED, "a")
    eventually(lambda: len(writer.created) == 4)
    assert len({event.name for event in writer.created}) == 4


def test_an_expired_event_begins_anew(recorder, writer):
    events = recorder()
    events.record(POD, FAILED, "a")
    eventually(lambda: writer.created)
    writer.errors = [NotFound("gone", 404)]
    events.record(POD, FAILED, "a")
    eventually(lambda: not writer.errors)
    events.record(POD, FAILED, "a")
    eventually(lambda: len(writer.created) == 2)


def test_a_failed_write_is_counted_and_the_next_goes_on(recorder, writer):
    writer.errors = [ServerFailed("down", 500)]
    events = recorder()
    events.record(POD, FAILED, "a")
    events.record(POD, FAILED, "b")
    eventually(lambda: writer.created)
    assert (events.failed, events.written) == (1, 1)


def test_what_does_not_fit_the_queue_is_dropped_and_never_waited_for(recorder, writer):
    writer.blocked.clear()
    events = recorder(waiting=10)
    began = time.monotonic()
    for number in range(1000):
        events.record(POD, FAILED, f"text {number}")
    assert time.monotonic() - began < 1
    assert events.dropped >= 985
    writer.blocked.set()
    eventually(lambda: events.written == 1000 - events.dropped)


def test_events_are_written_at_a_bounded_rate(recorder, writer):
    events = recorder(per_second=50)
    for number in range(100):
        events.record(POD, FAILED, f"text {number}")
    time.sleep(0.5)
    assert 5 <= len(writer.created) <= 30


def test_series_are_forgotten_when_there_are_too_many(recorder, writer):
    events = recorder(series=5, waiting=1000)
    for number in range(50):
        events.record(POD, FAILED, f"text {number}")
    assert len(events._series) == 5


@pytest.mark.parametrize("note", ["x" * 5000, "长" * 2000, "\ud800"])
def test_a_note_fits_what_the_api_accepts(recorder, writer, note):
    recorder().record(POD, FAILED, note)
    eventually(lambda: writer.created)
    found = writer.created[0].document["note"]
    assert 0 < len(found.encode()) <= NOTE_MAX


def test_stopping_ends_the_thread(recorder, writer):
    events = recorder()
    events.stop()
    assert not events._thread.is_alive()
