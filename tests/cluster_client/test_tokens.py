"""Tokens that are replaced while the process runs."""

from __future__ import annotations

import json
import threading
import time

import pytest
from kubernetes.config import incluster_config

from hami_web.cluster.client import KubernetesClient, OfficialConnection
from hami_web.cluster.errors import Unauthorized
from hami_web.cluster.reflector import Reflector, Timing
from hami_web.cluster.resources import nodes
from hami_web.cluster.transport import Request, Transport
from hami_web.simulator.identity import User
from hami_web.simulator.server import write_kubeconfig
from tests.cluster_client.test_reflector import Store


@pytest.fixture
def token_file(server, tmp_path):
    path = tmp_path / "token"
    path.write_text("first")
    server.identities.tokens = {"first": User("someone"), "admin": User("admin")}
    return path


@pytest.fixture
def transport(server, tmp_path, token_file):
    path = write_kubeconfig(tmp_path / "kubeconfig", server=server.url)
    config = json.loads(path.read_text())
    config["users"][0]["user"] = {"tokenFile": str(token_file)}
    path.write_text(json.dumps(config))
    connection = OfficialConnection(path)
    yield Transport(connection, user_agent="hami-web-test")
    connection.close()


@pytest.fixture
def admin(server, tmp_path):
    path = write_kubeconfig(tmp_path / "admin", server=server.url, token="admin")
    connection = OfficialConnection(path)
    yield Transport(connection, user_agent="admin")
    connection.close()


def replace(server, token_file, token):
    """The file changes, and the old token is refused from now on."""
    token_file.write_text(token)
    server.identities.tokens = {token: User("someone"), "admin": User("admin")}


def create_node(transport, name):
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    transport.send(Request("POST", "/api/v1/nodes", body=body))


def test_a_call_whose_token_was_replaced_is_made_with_the_new_one(server, transport, token_file):
    client = KubernetesClient(transport)
    create_node(transport, "n1")
    replace(server, token_file, "second")
    create_node(transport, "n2")
    assert client.get_node("n2").name == "n2"
    assert [entry.code for entry in server.audit if entry.verb == "create"] == [201, 201]


def test_a_token_that_is_refused_and_not_replaced_is_an_error(server, transport, token_file):
    server.identities.tokens = {"admin": User("admin")}
    with pytest.raises(Unauthorized):
        create_node(transport, "n1")
    replace(server, token_file, "third")
    create_node(transport, "n1")


def test_a_token_file_that_is_away_for_a_moment_is_an_error_of_the_cluster(
    server, transport, token_file
):
    server.identities.tokens = {"admin": User("admin")}
    token_file.unlink()
    with pytest.raises(Unauthorized):
        create_node(transport, "n1")
    replace(server, token_file, "fourth")
    create_node(transport, "n1")


def test_watches_go_on_while_tokens_are_replaced(server, transport, token_file, admin):
    store = Store()
    timing = Timing(watch_least_s=1, watch_most_s=1, backoff_first_s=0.01, backoff_most_s=0.05)
    reflector = Reflector("nodes", nodes(transport), store, timing=timing)
    reflector.start()
    try:
        soon(reflector.synced.is_set)
        for number in range(2):
            replace(server, token_file, f"token-{number}")
            time.sleep(1.2)  # the watch that began with the old token is over
            create_node(admin, f"n{number}")
            soon(lambda: len(store.names()) == number + 1)  # noqa: B023
    finally:
        reflector.stop()
    assert store.names() == ["n0", "n1"]
    assert {entry.user for entry in server.audit if entry.verb == "watch"} == {"someone"}


def test_many_threads_refused_at_once_read_the_new_token(server, transport, token_file):
    replace(server, token_file, "second")
    errors = []

    def call(number):
        try:
            create_node(transport, f"n{number}")
        except Unauthorized as error:
            errors.append(error)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_a_service_accounts_token_is_read_again_when_it_is_refused(monkeypatch, tmp_path):
    token, authority = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("first")
    authority.write_text("x")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(authority))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    monkeypatch.setattr("kubernetes.client.ApiClient", lambda _configuration: None)
    connection = OfficialConnection()
    before = dict(connection.auth_headers())
    assert before == {"authorization": "bearer first"}
    assert not connection.renew(before)
    token.write_text("second")
    assert connection.renew(before)
    assert dict(connection.auth_headers()) == {"authorization": "bearer second"}
    assert connection.renew(before)


def soon(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
