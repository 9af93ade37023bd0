"""Signatures of reservations and the key file."""

from __future__ import annotations

import base64
import logging
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_web.core.placement import Placement
from hami_web.core.reservation import (
    Reservation,
    RuntimeIdentity,
    decode_allocations,
    encode_allocations,
)
from hami_web.core.signature import (
    InvalidSignature,
    InvalidSigningKey,
    KeyFile,
    KeyRing,
    SigningKey,
    canonical,
    parse_key_ring,
)
from tests.builders import GPU_A, GPU_B, reservation

OLD = SigningKey("old", b"o" * 32)
NEW = SigningKey("new", b"n" * 32)
RING = KeyRing((NEW, OLD))
TEXT = st.text(max_size=30)
RECORDS = st.lists(
    st.builds(
        Reservation,
        st.integers(0, 20),
        st.integers(0, 20),
        st.sampled_from([GPU_A, GPU_B, "GPU-x"]),
        st.sampled_from(["1g.5gb", "2g.10gb", "1g.5gb+me"]),
        st.builds(Placement, st.integers(0, 7), st.integers(1, 8)),
        st.none() | st.builds(RuntimeIdentity, st.just("MIG-1"), st.integers(0, 9), st.just(0)),
    ),
    max_size=5,
    unique_by=lambda item: item.key,
)


def line(key: SigningKey) -> str:
    return f"{key.key_id} {base64.b64encode(key.secret).decode()}"


@given(TEXT, TEXT, RECORDS)
def test_a_signature_holds_for_any_order_and_with_any_runtime_identity(
    uid: str, node: str, records: list[Reservation]
) -> None:
    signature = RING.sign(uid, node, records)
    enriched = [replace(r, identity=RuntimeIdentity("MIG-2", 3, 1)) for r in reversed(records)]
    assert RING.verify(signature, uid, node, enriched) == "new"


@given(TEXT, TEXT, RECORDS, TEXT, TEXT, RECORDS)
def test_a_signature_holds_for_nothing_else(
    uid: str,
    node: str,
    records: list[Reservation],
    other_uid: str,
    other_node: str,
    others: list[Reservation],
) -> None:
    def logical(items: list[Reservation]) -> set[Reservation]:
        return {replace(item, identity=None) for item in items}

    signature = RING.sign(uid, node, records)
    if (uid, node, logical(records)) == (other_uid, other_node, logical(others)):
        return
    with pytest.raises(InvalidSignature, match="does not match"):
        RING.verify(signature, other_uid, other_node, others)


@pytest.mark.parametrize(
    "change",
    [
        {"container": 1},
        {"device": 1},
        {"gpu": GPU_B},
        {"name": "1g.5gb"},
        {"start": 4},
        {"size": 1},
    ],
)
def test_every_logical_field_is_signed(change: dict[str, object]) -> None:
    signature = RING.sign("uid", "node", [reservation()])
    with pytest.raises(InvalidSignature):
        RING.verify(signature, "uid", "node", [reservation(**change)])  # type: ignore[arg-type]


def test_what_the_wire_carries_verifies_again() -> None:
    records = [reservation(), reservation(1, start=4)]
    signature = RING.sign("uid", "node", records)
    assert RING.verify(signature, "uid", "node", decode_allocations(encode_allocations(records)))


def test_the_format_is_fixed() -> None:
    """The digest was computed with ``openssl dgst -sha256 -mac HMAC`` over the text."""
    uid, digest = (
        "6f0f0a7e-0000-4000-8000-000000000001",
        "cce41f626a0edca93fd0cb788fab764840cba219a2eca1cbc4cd39b7a75cfefd",
    )
    text = f'["hami.io/vgpu-mig-signature","v1","{uid}","gpu-n1",[[0,0,"{GPU_A}","2g.10gb",0,2]]]'
    assert canonical(uid, "gpu-n1", [reservation()]) == text.encode()
    ring = KeyRing((SigningKey("k1", bytes(range(32))),))
    assert ring.sign(uid, "gpu-n1", [reservation()]) == f"v1.k1.{digest}"


def test_several_keys_are_accepted_and_the_first_signs() -> None:
    by_old = KeyRing((OLD,)).sign("uid", "node", [reservation()])
    assert RING.verify(by_old, "uid", "node", [reservation()]) == "old"
    assert RING.sign("uid", "node", [reservation()]).startswith("v1.new.")
    with pytest.raises(InvalidSignature, match="key 'old' is not known; known: new"):
        KeyRing((NEW,)).verify(by_old, "uid", "node", [reservation()])


def test_a_key_of_the_same_name_with_another_secret_does_not_verify() -> None:
    forged = KeyRing((SigningKey("new", b"x" * 32),)).sign("uid", "node", [])
    with pytest.raises(InvalidSignature, match="does not match"):
        RING.verify(forged, "uid", "node", [])


@pytest.mark.parametrize(
    "text", ["v1", "v1.", "v1.new", "v1.new.", "v2.new.00", ".", "ä.new.0", "v1.new.\ud800"]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidSignature):
        RING.verify(text, "uid", "node", [])


@pytest.mark.parametrize("text", [None, ""])
def test_a_missing_signature_is_called_missing(text: str | None) -> None:
    with pytest.raises(InvalidSignature, match="missing"):
        RING.verify(text, "uid", "node", [])


@given(st.text(max_size=80))
def test_no_text_verifies_by_chance_or_breaks_the_reader(text: str) -> None:
    with pytest.raises(InvalidSignature):
        RING.verify(text, "uid", "node", [])


def test_a_key_file_has_one_key_a_line_and_comments() -> None:
    text = f"# the cluster's keys\n{line(NEW)}  # since May\n\n{line(OLD)}\n"
    assert parse_key_ring(text, "keys") == RING


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "0 keys"),
        ("# nothing\n", "0 keys"),
        ("new", "1 words"),
        ("new ###", "1 words"),
        ("new !!!!", "no base64"),
        ("new c2hvcnQ=", "5 bytes"),
        (f"a.b {line(NEW).split()[1]}", "2 words"),
        (f"{line(NEW)}\n{line(NEW)}", "each key id once"),
    ],
)
def test_a_key_file_that_makes_no_sense_is_refused_by_line(text: str, what: str) -> None:
    with pytest.raises(InvalidSigningKey, match=what):
        parse_key_ring(text, "keys")


def test_no_error_and_no_repr_shows_a_secret() -> None:
    secret = base64.b64encode(b"s3cret").decode()
    with pytest.raises(InvalidSigningKey) as caught:
        parse_key_ring(f"new {secret}", "keys")
    assert secret not in str(caught.value)
    assert "nnnn" not in repr(RING)


def test_a_changed_key_file_is_used_without_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(line(OLD))
    keys = KeyFile(path)
    assert keys.ring() == KeyRing((OLD,))
    path.write_text(f"{line(NEW)}\n{line(OLD)}")
    assert keys.ring() == RING


def test_a_key_file_that_breaks_leaves_the_last_keys_in_force(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "keys"
    path.write_text(line(OLD))
    keys = KeyFile(path)
    path.unlink()
    with caplog.at_level(logging.ERROR):
        assert keys.ring() == KeyRing((OLD,))
    assert "stay in force" in caplog.text


def test_a_key_file_that_is_missing_at_first_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidSigningKey, match="No such file"):
        KeyFile(tmp_path / "none")
