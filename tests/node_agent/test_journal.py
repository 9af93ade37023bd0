"""The journal: old or new text after any crash, nothing believed that is not whole and current."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hami_web.core.placement import Placement
from hami_web.core.reservation import RuntimeIdentity
from node_agent import journal as module
from node_agent.errors import JournalFailure
from node_agent.journal import DriverLoad, Journal
from node_agent.ownership import InstanceRecord, InstanceSpec, Owner, RecordState

LOAD = DriverLoad("boot-1", "load-1")

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
records = st.builds(
    InstanceRecord,
    owner=st.builds(Owner, texts, st.integers(0, 3), st.integers(0, 3)),
    namespace=texts,
    pod_name=texts,
    spec=st.builds(
        InstanceSpec,
        texts,
        texts,
        st.builds(Placement, st.integers(0, 11), st.integers(1, 12)),
    ),
    profile_id=st.integers(0, 50),
    state=st.sampled_from(RecordState),
    identity=st.none() | st.builds(RuntimeIdentity, texts, st.integers(0, 14), st.integers(0, 7)),
    device_ids=st.lists(texts, max_size=3).map(tuple),
    since=st.floats(0, 2e9),
    reason=st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
)

RECORD = InstanceRecord(
    Owner("uid", 0, 1),
    "ns",
    "pod",
    InstanceSpec("GPU-a", "1g.5gb", Placement(6, 1)),
    19,
    RecordState.INTENT,
    None,
    ("GPU-a-0",),
    since=5.0,
)


@settings(max_examples=15)
@given(st.lists(records, unique_by=lambda record: record.owner, max_size=4))
def test_what_was_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, written: list[InstanceRecord]
) -> None:
    folder = tmp_path_factory.mktemp("journal")
    journal = Journal(folder, LOAD)
    for record in written:
        journal.put(record)
    assert Journal(folder, LOAD).records() == tuple(sorted(written, key=lambda r: r.owner))


def test_a_removed_record_stays_removed(tmp_path: Path) -> None:
    journal = Journal(tmp_path, LOAD)
    journal.put(RECORD)
    journal.remove(RECORD.owner)
    journal.remove(RECORD.owner)
    assert Journal(tmp_path, LOAD).records() == ()


@pytest.mark.parametrize("load", [DriverLoad("boot-2", "load-1"), DriverLoad("boot-1", "load-2")])
def test_another_life_of_the_hardware_voids_all_records(tmp_path: Path, load: DriverLoad) -> None:
    Journal(tmp_path, LOAD).put(RECORD)
    later = Journal(tmp_path, load)
    assert later.records() == ()
    assert later.doubt == ""


def test_a_failed_write_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path, LOAD)
    journal.put(RECORD)

    def full(_path: Path, _text: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "write_durably", full)
    with pytest.raises(JournalFailure, match="No space left"):
        journal.put(replace(RECORD, state=RecordState.REALIZED))
    assert journal.get(RECORD.owner) == RECORD


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"state":"intent"', '"state":"other"'),
        ('"profileID":19', '"profileID":"19"'),
        ('"size":1', '"size":0'),
        ('"podUID":"uid"', '"podUID":""'),
        ('"deviceIDs":["GPU-a-0"]', '"deviceIDs":null'),
        ('"migUUID":null', '"migUUID":"MIG-1"'),
        ('"records":[', '"records":[1,'),
        ('"earlier":[]}', '"earlier":[]'),
    ],
)
def test_a_journal_with_one_bad_field_is_kept_aside(tmp_path: Path, old: str, new: str) -> None:
    Journal(tmp_path, LOAD).put(RECORD)
    path = tmp_path / "instances.json"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    journal = Journal(tmp_path, LOAD)
    assert journal.records() == ()
    assert "unreadable" in journal.doubt
    assert [p.read_text() for p in tmp_path.glob("*.malformed-*")] == [text.replace(old, new)]
