"""Whatever is posted, the views answer: a decision, an error text, or 400; never an exception."""

from __future__ import annotations

import json

import pytest
from django.test import RequestFactory
from hypothesis import given
from hypothesis import strategies as st

from hami_web.core.policy import SchedulingPolicy
from hami_web.core.request import parse_pod_request
from hami_web.extender.views import ExtenderViews
from hami_web.scheduling.admission import Admission
from hami_web.scheduling.decision_log import DecisionLog
from hami_web.scheduling.decisions import Fits, refused_everywhere
from hami_web.scheduling.errors import NoHold
from hami_web.scheduling.state import ClusterState, Held
from tests.extender.samples import golden


class Core:
    """The real state without nodes; binds find no hold."""

    def __init__(self):
        self.state = ClusterState(SchedulingPolicy())

    def filter(self, pod, names):
        request = parse_pod_request(pod.container_specs(), pod.annotations)
        if not request.devices:
            return Fits(names)
        answer = self.state.filter(pod, request, names)
        assert not isinstance(answer, Held)
        return refused_everywhere(answer.details)

    def bind(self, order):
        raise NoHold(order.pod)

    def decisions_since(self, cursor, limit):
        return DecisionLog().since(cursor, limit)

    def not_ready_because(self):
        return None


VIEWS = ExtenderViews(Core(), Admission())
BY_PATH = {str(pattern.pattern): pattern.callback for pattern in VIEWS.patterns()}
SAMPLES = {
    "filter": ("filter-names.json", "filter-whole-nodes.json"),
    "bind": ("bind.json",),
    "webhook": ("admission-replicaset.json",),
}
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=2),
    st.sampled_from(["nvidia.com/gpu", "1.5", "-1", "9" * 40, "\ud800", "\x00"]),
)


def spots(document):
    """Every place in a document: its container and key."""
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in list(items):
        yield document, key
        if isinstance(value, dict | list):
            yield from spots(value)


def post(path, body):
    request = RequestFactory().post(f"/{path}", data=body, content_type="application/json")
    return BY_PATH[path](request)


@pytest.mark.parametrize("path", sorted(SAMPLES))
@given(data=st.data())
def test_a_changed_document_is_answered(path, data):
    document = golden(data.draw(st.sampled_from(SAMPLES[path])))["request"]
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = data.draw(st.sampled_from(list(spots(document))))
        container[key] = data.draw(ODD)
    response = post(path, json.dumps(document).encode())
    assert response.status_code in (200, 400)
    if response.status_code == 200:
        assert isinstance(json.loads(response.content), dict)


@pytest.mark.parametrize("path", sorted(SAMPLES))
@given(cut=st.integers(0, 10_000), junk=st.binary(max_size=6))
def test_a_broken_text_is_refused(path, cut, junk):
    text = json.dumps(golden(SAMPLES[path][0])["request"]).encode()
    body = text[: cut % len(text)] + junk
    assert post(path, body).status_code in (200, 400)
