"""AdmissionReview in both versions, with and without a Pod's name."""

from __future__ import annotations

import base64
import json

import pytest

from hami_web.extender.admission_wire import decode_review, encode_review
from hami_web.extender.wire import MalformedBody
from hami_web.scheduling.admission import Admission
from tests.extender.samples import body, golden


def answer_to(document):
    review = decode_review(body(document))
    return json.loads(encode_review(review, Admission().review(review.call)))


def patch_of(answer):
    return json.loads(base64.b64decode(answer["response"]["patch"]))


@pytest.mark.parametrize("version", ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"])
def test_a_pod_of_a_replica_set_is_patched_with_warnings(version):
    sample = golden("admission-replicaset.json")
    answer = answer_to(sample["request"] | {"apiVersion": version})
    assert (answer["kind"], answer["apiVersion"]) == ("AdmissionReview", version)
    assert answer["response"]["uid"] == sample["request"]["request"]["uid"]
    assert answer["response"]["allowed"] is True
    assert answer["response"]["patchType"] == "JSONPatch"
    assert patch_of(answer) == sample["patch"]
    assert answer["response"]["warnings"] == sample["warnings"]


def test_a_refusal_carries_its_text_and_no_patch():
    document = golden("admission-replicaset.json")["request"]
    document["request"]["object"]["spec"]["nodeName"] = "gpu-n1"
    response = answer_to(document)["response"]
    assert response["allowed"] is False
    assert "team-a/web-5c9-…: spec.nodeName" in response["status"]["message"]
    assert "patch" not in response


@pytest.mark.parametrize(
    "change",
    [
        {"apiVersion": "admission.k8s.io/v2"},
        {"kind": "Pod"},
        {"request": None},
        {"request": {"uid": "u", "kind": {"kind": "Node"}, "operation": "CREATE"}},
    ],
)
def test_another_document_is_malformed(change):
    document = golden("admission-replicaset.json")["request"] | change
    with pytest.raises(MalformedBody):
        decode_review(body(document))
