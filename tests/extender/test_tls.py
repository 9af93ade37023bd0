"""The extender over TLS, with certificates that are replaced while it runs."""

from __future__ import annotations

import base64
import http.client
import shutil
import ssl
import subprocess
import time

import pytest

from hami_web.cluster.transport import Request
from hami_web.extender.certificates import TrustWatch, mistrust

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")


def make_certificate(folder):
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -keyout tls.key -out tls.crt "
        "-subj /CN=localhost -addext subjectAltName=DNS:localhost"
    )
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)


def health(port, certificate):
    """The status over TLS, trusting exactly this certificate."""
    context = ssl.create_default_context(cafile=str(certificate))
    connection = http.client.HTTPSConnection("localhost", port, timeout=10, context=context)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_replaced_certificate_is_used_without_a_restart(start_extender, tmp_path):
    make_certificate(tmp_path)
    files = (tmp_path / "tls.crt", tmp_path / "tls.key")
    extender = start_extender(
        HAMI_EXTENDER_TLS_CERT=str(files[0]), HAMI_EXTENDER_TLS_KEY=str(files[1])
    )
    deadline = time.monotonic() + 45
    while True:
        try:
            assert health(extender.port, files[0]) == 200
            break
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    old = shutil.copy(files[0], tmp_path / "old.crt")

    make_certificate(tmp_path)

    assert health(extender.port, files[0]) == 200
    with pytest.raises(ssl.SSLCertVerificationError):
        health(extender.port, old)


def test_a_ca_bundle_of_another_key_is_noticed(start_extender, cluster, tmp_path):
    """Tried as the API server would: name and signature of the certificate, by the bundle."""
    other = tmp_path / "other"
    other.mkdir()
    make_certificate(tmp_path)
    make_certificate(other)
    ours, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    assert mistrust(ours, key, ours.read_bytes(), "localhost") is None
    assert "verify failed" in mistrust(ours, key, (other / "tls.crt").read_bytes(), "localhost")
    assert "ame mismatch" in mistrust(ours, key, ours.read_bytes(), "hami-extender.hami-system.svc")
    assert "cannot be read" in mistrust(ours, key, b"no PEM", "localhost")

    config = {
        "url": "https://localhost:1/webhook",
        "caBundle": base64.b64encode((other / "tls.crt").read_bytes()).decode(),
    }
    document = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "hami-webhook"},
        "webhooks": [{"name": "vgpu.hami.io", "clientConfig": config, "rules": []}],
    }
    path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    cluster.create(path, document)
    watch = TrustWatch(lambda: cluster.client.get_webhook("hami-webhook"), ours, key)
    watch.look()
    assert "verify failed" in watch.problem
    config["caBundle"] = base64.b64encode(ours.read_bytes()).decode()
    merge = "application/merge-patch+json"
    body = {"webhooks": document["webhooks"]}
    cluster.transport.send(Request("PATCH", f"{path}/hami-webhook", body=body, content_type=merge))
    watch.look()
    assert watch.problem is None
