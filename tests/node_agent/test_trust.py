"""Signed reservations: with keys, only what the scheduler signed is realized."""

from __future__ import annotations

import base64
from collections.abc import Mapping

import grpc
import pytest

from hami_web.core import annotations as keys
from hami_web.core.signature import parse_key_ring
from tests.node_agent.lab import NODE, Lab, wait_until

KEYS = f"k1 {base64.b64encode(b'1' * 32).decode()}\n"
OTHER_KEYS = f"k1 {base64.b64encode(b'2' * 32).decode()}\n"


def key_file(lab: Lab) -> Mapping[str, str]:
    path = lab.folder / "keys"
    path.write_text(KEYS)
    return {"HAMI_SIGNING_KEYS": str(path)}


def sign(lab: Lab, uid: str, node: str = NODE, ring: str = KEYS) -> None:
    signature = parse_key_ring(ring, "keys").sign(uid, node, lab.reservations("job"))
    lab.annotate("job", {keys.POD_MIG_SIGNATURE: signature})


def refusal(lab: Lab) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as caught:
        lab.kubelet.allocate(lab.ids()[0])
    assert lab.placements() == []
    assert lab.annotations("job")[keys.POD_BIND_PHASE] == "failed"
    return caught.value.code(), caught.value.details()


def test_a_signed_reservation_is_realized_for_every_container(lab: Lab) -> None:
    with lab.agent(**key_file(lab)):
        sign(lab, lab.reserve("job", [(0, "1g.5gb", 6, 1)], [(0, "1g.5gb", 5, 1)]))
        lab.kubelet.allocate(lab.ids()[0])
        lab.kubelet.allocate(lab.ids(2)[1])
        assert lab.placements() == [(5, 1), (6, 1)]


def test_an_unsigned_reservation_is_refused(lab: Lab) -> None:
    with lab.agent(**key_file(lab)):
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        code, text = refusal(lab)
        assert code is grpc.StatusCode.PERMISSION_DENIED
        assert "not signed" in text


@pytest.mark.parametrize("changes", [{"node": "gpu-n2"}, {"uid": "another"}, {"ring": OTHER_KEYS}])
def test_a_signature_for_something_else_is_refused(lab: Lab, changes: dict[str, str]) -> None:
    with lab.agent(**key_file(lab), HAMI_ACCEPT_UNSIGNED="true"):
        uid = lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        sign(lab, **({"uid": uid} | changes))
        assert "does not match" in refusal(lab)[1]


def test_an_unsigned_reservation_is_accepted_where_it_is_allowed(lab: Lab) -> None:
    with lab.agent(**key_file(lab), HAMI_ACCEPT_UNSIGNED="true"):
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        assert lab.kubelet.allocate(lab.ids()[0])


def test_without_readable_keys_nothing_is_realized_and_nothing_is_bound_to_the_node(
    lab: Lab,
) -> None:
    keys_file = lab.folder / "keys"
    with lab.starting_agent(HAMI_SIGNING_KEYS=str(keys_file)) as agent:
        wait_until(lambda: agent.problem().startswith("SigningKeysUnusable: HAMI_SIG"), "told")
        wait_until(lambda: lab.kubelet.devices, "devices offered")
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        assert "no reservation can be verified" in refusal(lab)[1]
        assert not lab.lease_holder()
        keys_file.write_text(f"k {base64.b64encode(bytes(32)).decode()}\n")
        wait_until(lambda: not agent.problem(), "ready")
        wait_until(lab.lease_holder, "serves", 20)
