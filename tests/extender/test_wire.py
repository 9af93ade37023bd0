"""Requests as kube-scheduler sends them, answers as Go reads them."""

from __future__ import annotations

import json

import pytest

from hami_web.extender import wire
from tests.extender.samples import body, golden


@pytest.mark.parametrize("name", ["filter-names.json", "filter-whole-nodes.json"])
def test_a_fit_is_answered_in_the_form_of_the_request(name):
    sample = golden(name)
    call = wire.decode_filter(body(sample["request"]))
    assert call.names == ("gpu-n1", "gpu-n2")
    assert call.pod.full_name == "team-a/job-1"

    answer = json.loads(wire.encode_fit(call, sample["fit"]))
    assert answer == json.loads(sample["answer"])
    assert list(answer) == list(json.loads(sample["answer"]))


def test_names_are_answered_byte_for_byte():
    sample = golden("filter-names.json")
    call = wire.decode_filter(body(sample["request"]))
    assert wire.encode_fit(call, sample["fit"]).decode() == sample["answer"]


def test_a_refusal_is_sorted_and_null_where_empty():
    sample = golden("refusal.json")
    answer = wire.encode_refusal(sample["failed"], sample["unresolvable"])
    assert answer.decode() == sample["answer"]
    assert b'"FailedNodes":null' in wire.encode_refusal({}, sample["unresolvable"])


def test_an_error_is_escaped_as_go_does():
    sample = golden("refusal.json")["error"]
    assert wire.encode_filter_error(sample["text"]).decode() == sample["answer"]


def test_a_bind_is_read_and_answered():
    sample = golden("bind.json")
    call = wire.decode_bind(body(sample["request"]))
    assert (call.namespace, call.name, call.node) == ("team-a", "job-1", "gpu-n1")
    assert call.uid == sample["request"]["PodUID"]
    assert wire.encode_bind_result().decode() == sample["success"]
    failure = sample["failure"]
    assert wire.encode_bind_result(failure["text"]).decode() == failure["answer"]


def test_keys_are_read_in_any_case():
    request = golden("filter-names.json")["request"]
    folded = {key.lower(): value for key, value in request.items()}
    assert wire.decode_filter(body(folded)) == wire.decode_filter(body(request))

    bind = golden("bind.json")["request"]
    upper = {key.upper(): value for key, value in bind.items()}
    assert wire.decode_bind(body(upper)) == wire.decode_bind(body(bind))


@pytest.mark.parametrize(
    "text", [b"{", b"[]", b'"Pod"', b"\xff\xfe", b'{"Pod": 3}', b'{"NodeNames": [1]}', b"[" * 5000]
)
def test_a_body_of_another_shape_is_malformed(text):
    with pytest.raises(wire.MalformedBody):
        wire.decode_filter(text)


@pytest.mark.parametrize(
    ("field", "text"), [("Pod", "Pod: missing"), ("NodeNames", "Nodes, NodeNames: both missing")]
)
def test_a_filter_that_lacks_something_names_it(field, text):
    request = golden("filter-names.json")["request"] | {field: None}
    with pytest.raises(wire.IncompleteCall, match=text):
        wire.decode_filter(body(request))


def test_a_bind_that_lacks_fields_names_them():
    request = golden("bind.json")["request"] | {"PodUID": "", "Node": ""}
    with pytest.raises(wire.IncompleteCall, match="PodUID, Node: missing"):
        wire.decode_bind(body(request))


def test_a_node_without_a_name_is_named():
    request = golden("filter-whole-nodes.json")["request"]
    request["Nodes"]["items"][0]["metadata"].pop("name")
    with pytest.raises(wire.IncompleteCall, match=r"metadata\.name"):
        wire.decode_filter(body(request))
