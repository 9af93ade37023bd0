"""Webhooks are called on the way in, and their answers obeyed."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from hami_web.simulator.client import ApiClient, ApiError, Endpoint
from hami_web.simulator.server import SimulatedApiServer
from tests.simulator.contract.conftest import pod

PODS = "/api/v1/namespaces/default/pods"


class Webhook:
    """Answers every review by merging ``response`` into an allowance."""

    def __init__(self) -> None:
        self.reviews: list[dict[str, Any]] = []
        self.response: dict[str, Any] = {}
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                owner.reviews.append(review["request"])
                answer = {"uid": review["request"]["uid"], "allowed": True, **owner.response}
                self.send_response(200)
                self.end_headers()
                envelope = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
                self.wfile.write(json.dumps(envelope | {"response": answer}).encode())

            def log_message(self, *args: object) -> None:
                return

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_address[1]}/webhook"


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    made = Webhook()
    thread = Thread(target=made.http.serve_forever, args=(0.02,))
    thread.start()
    yield made
    made.http.shutdown()
    thread.join()
    made.http.server_close()


def install(client: ApiClient, url: str, **more: object) -> None:
    rule = {
        "operations": ["CREATE", "UPDATE"],
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["pods"],
    }
    hook = {"name": "vgpu.hami.io", "clientConfig": {"url": url}, "rules": [rule], **more}
    client.create(
        "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
        {"metadata": {"name": "hami"}, "webhooks": [hook]},
    )


def test_a_json_patch_changes_the_new_pod(client: ApiClient, webhook: Webhook) -> None:
    install(client, webhook.url)
    patch = [{"op": "replace", "path": "/spec/schedulerName", "value": "hami-scheduler"}]
    encoded = base64.b64encode(json.dumps(patch).encode()).decode()
    webhook.response = {"patchType": "JSONPatch", "patch": encoded}
    made = client.create(PODS, pod("a"))
    assert made["spec"]["schedulerName"] == "hami-scheduler"


def test_the_review_has_the_recorded_shape(client: ApiClient, webhook: Webhook) -> None:
    install(client, webhook.url)
    document = pod("a")
    document["metadata"] = {"generateName": "trainer-"}
    client.create(PODS, document)
    (request,) = webhook.reviews
    assert request["operation"] == "CREATE"
    assert "name" not in request
    assert request["object"]["metadata"] == {"generateName": "trainer-", "creationTimestamp": None}
    assert request["object"]["status"] == {}
    assert request["object"]["spec"]["terminationGracePeriodSeconds"] == 30
    assert request["oldObject"] is None
    assert request["options"] == {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"}


def test_a_denial_reaches_the_user(client: ApiClient, webhook: Webhook) -> None:
    install(client, webhook.url)
    webhook.response = {"allowed": False, "status": {"message": "gpumem must be whole"}}
    text = 'admission webhook "vgpu.hami.io" denied the request: gpumem must be whole'
    with pytest.raises(ApiError, match=text) as caught:
        client.create(PODS, pod("a"))
    assert caught.value.code == 400


def test_an_update_shows_the_old_object_too(client: ApiClient, webhook: Webhook) -> None:
    client.create(PODS, pod("a"))
    install(client, webhook.url)
    client.patch(f"{PODS}/a", {"metadata": {"annotations": {"hami.io/x": "1"}}})
    (request,) = webhook.reviews
    assert (request["operation"], request["name"]) == ("UPDATE", "a")
    assert "annotations" not in request["oldObject"]["metadata"]
    assert request["object"]["metadata"]["annotations"] == {"hami.io/x": "1"}


def test_selected_out_pods_are_not_reviewed(client: ApiClient, webhook: Webhook) -> None:
    not_ignored = {"key": "hami.io/webhook", "operator": "NotIn", "values": ["ignore"]}
    install(client, webhook.url, objectSelector={"matchExpressions": [not_ignored]})
    client.create(PODS, pod("a", labels={"hami.io/webhook": "ignore"}))
    client.create(PODS, pod("b"))
    assert [request["name"] for request in webhook.reviews] == ["b"]


def test_a_dead_webhook_fails_or_is_ignored_by_policy(client: ApiClient) -> None:
    install(client, "http://127.0.0.1:9/webhook", failurePolicy="Fail", timeoutSeconds=1)
    with pytest.raises(ApiError, match='failed calling webhook "vgpu') as caught:
        client.create(PODS, pod("a"))
    assert caught.value.code == 500
    path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/hami"
    client.delete(path)
    install(client, "http://127.0.0.1:9/webhook", failurePolicy="Ignore")
    client.create(PODS, pod("a"))


def test_a_webhook_behind_a_service_is_called_where_the_test_says(webhook: Webhook) -> None:
    base = webhook.url.removesuffix("/webhook")
    with SimulatedApiServer(services={("hami", "extender"): base}) as server:
        api = ApiClient(Endpoint(server.url))
        service = {"namespace": "hami", "name": "extender", "path": "/webhook"}
        install(api, "", clientConfig={"service": service})
        api.create(PODS, pod("a"))
        api.close()
    assert [request["name"] for request in webhook.reviews] == ["a"]


def test_an_answer_for_another_request_fails(client: ApiClient, webhook: Webhook) -> None:
    install(client, webhook.url)
    webhook.response = {"uid": "other"}
    with pytest.raises(ApiError, match=r"expected response\.uid"):
        client.create(PODS, pod("a"))
