"""The client's calls and errors, on a real HTTP server."""

from __future__ import annotations

import socket

import pytest

from hami_web.cluster.client import KubernetesClient, OfficialConnection
from hami_web.cluster.errors import (
    Conflict,
    Forbidden,
    InvalidConfiguration,
    NotFound,
    OutcomeUnclear,
    ServerFailed,
    TooManyRequests,
    Unreachable,
)
from hami_web.cluster.ports import Binding
from hami_web.cluster.transport import Transport
from hami_web.simulator.faults import RequestMatch
from hami_web.simulator.server import write_kubeconfig


def test_a_missing_node_is_not_found(client):
    with pytest.raises(NotFound, match="404"):
        client.get_node("absent")


def test_a_patch_from_an_older_version_conflicts_and_changes_nothing(client, make_node):
    make_node("n1")
    old = client.get_node("n1")
    client.annotate_node(old, {"a": "first"})

    with pytest.raises(Conflict):
        client.annotate_node(old, {"a": "second"})

    assert client.get_node("n1").annotations == {"a": "first"}


def test_none_removes_an_annotation(client, make_node):
    make_node("n1", {"a": "x", "b": "y"})
    changed = client.annotate_node(client.get_node("n1"), {"a": None})
    assert changed.annotations == {"b": "y"}


def test_a_binding_sets_node_and_annotations_in_one_write(client, make_node, make_pod):
    make_node("n1")
    make_pod("p")
    uid = client.get_pod("default", "p").uid

    client.bind(Binding("default", "p", uid, "n1", {"hami.io/vgpu-node": "n1"}))

    pod = client.get_pod("default", "p")
    assert pod.node_name == "n1"
    assert pod.annotations["hami.io/vgpu-node"] == "n1"


def test_a_binding_of_another_uid_conflicts(client, make_node, make_pod):
    make_node("n1")
    make_pod("p")
    with pytest.raises(Conflict):
        client.bind(Binding("default", "p", "another-uid", "n1"))
    assert client.get_pod("default", "p").node_name == ""


def test_a_pod_is_annotated_by_uid(client, make_pod):
    make_pod("p")
    pod = client.get_pod("default", "p")
    client.annotate_pod(pod, {"hami.io/retry-at": "1"})
    assert client.get_pod("default", "p").annotations["hami.io/retry-at"] == "1"

    pod.metadata.uid = "another-uid"
    with pytest.raises(Conflict):
        client.annotate_pod(pod, {"hami.io/retry-at": "2"})


def test_a_lost_answer_of_a_write_is_unclear_and_not_sent_again(server, client, make_node):
    make_node("n1")
    node = client.get_node("n1")
    server.faults.order("lose-answer", RequestMatch(verb="patch"))

    with pytest.raises(OutcomeUnclear):
        client.annotate_node(node, {"a": "x"})

    assert client.get_node("n1").annotations == {"a": "x"}


def test_a_read_over_a_dead_connection_is_sent_again(server, client, make_node):
    make_node("n1")
    server.faults.order("drop", RequestMatch(verb="get"))
    assert client.get_node("n1").name == "n1"


@pytest.mark.parametrize(
    ("code", "error"), [(403, Forbidden), (500, ServerFailed), (503, ServerFailed)]
)
def test_statuses_become_errors(server, client, code, error):
    server.faults.answer(code, RequestMatch(verb="get"))
    with pytest.raises(error) as caught:
        client.get_node("n1")
    assert caught.value.status == code


def test_too_many_requests_says_when_to_try_again(server, client):
    server.faults.answer(429, RequestMatch(verb="get"), retry_after=7)
    with pytest.raises(TooManyRequests) as caught:
        client.get_node("n1")
    assert caught.value.retry_after_s == 7


def test_no_listener_is_unreachable_so_nothing_was_sent(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        connection = OfficialConnection(write_kubeconfig(tmp_path / "k", server=url))
        client = KubernetesClient(Transport(connection, user_agent="test"))
        with pytest.raises(Unreachable) as caught:
            client.get_node("n1")
    assert not caught.value.outcome_unclear


def test_a_missing_kubeconfig_is_named(tmp_path):
    with pytest.raises(InvalidConfiguration, match="absent"):
        OfficialConnection(tmp_path / "absent")
