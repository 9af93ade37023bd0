"""The extender over TLS, with certificates that are replaced while it runs."""

from __future__ import annotations

import http.client
import shutil
import ssl
import subprocess
import time

import pytest

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
    deadline = time.monotonic() + 15
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
