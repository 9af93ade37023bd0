"""Set-up makes what an installation lacks, replaces nothing, and renews what ends."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from hami_web.cluster.client import KubernetesClient, OfficialConnection
from hami_web.cluster.errors import ClusterError
from hami_web.cluster.secrets import SecretStore
from hami_web.cluster.transport import Request, Transport
from hami_web.core.signature import KeyFile
from hami_web.extender.certificates import mistrust
from hami_web.extender.installing import TLS_SECRET, Installer, SetupFailed, Wanted
from hami_web.extender.issuing import Signed, make_authority, make_certificate, must_be_renewed
from hami_web.simulator.server import SimulatedApiServer, write_kubeconfig
from tests.extender.test_webhook import CONFIGURATIONS, WEBHOOK

NAMESPACE = "hami-system"
ALL = Wanted(signing_keys=True, secret_key=True, admin=True, certificate=True, webhook=True)
NAMES = (
    f"hami-extender.{NAMESPACE}.svc",
    f"hami-extender.{NAMESPACE}.svc.cluster.local",
    "localhost",
    "127.0.0.1",
)
NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture
def transport(tmp_path):
    with SimulatedApiServer() as server:
        path = write_kubeconfig(tmp_path / "kubeconfig", server=server.url)
        connection = OfficialConnection(path)
        found = Transport(connection, user_agent="test")
        found.send(Request("POST", CONFIGURATIONS, body=yaml.safe_load(WEBHOOK.read_text())))
        yield found
        connection.close()


@pytest.fixture
def secrets(transport):
    return SecretStore(transport, NAMESPACE)


def everything(secrets):
    names = ("hami-signing-keys", "hami-secret-key", "hami-admin", "hami-ca", TLS_SECRET)
    return {name: secrets.read(name) for name in names}


def test_a_new_installation_gets_all_that_its_roles_need(transport, secrets, tmp_path):
    Installer(transport, NAMESPACE).run(ALL)
    found = everything(secrets)
    keys = tmp_path / "keys"
    keys.write_bytes(found["hami-signing-keys"]["signing-keys"])
    KeyFile(keys)
    assert len(found["hami-secret-key"]["secret-key"]) >= 50
    assert len(found["hami-admin"]["password"]) >= 20


def test_the_api_server_trusts_the_certificate_that_set_up_made(transport, secrets, tmp_path):
    Installer(transport, NAMESPACE).run(ALL)
    for name, data in secrets.read(TLS_SECRET).items():
        (tmp_path / name).write_bytes(data)
    (webhook,) = KubernetesClient(transport).get_webhook("hami-webhook").webhooks
    bundle = base64.b64decode(webhook.client_config.ca_bundle)
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    assert mistrust(certificate, key, bundle, webhook.client_config.server_name) is None
    assert mistrust(certificate, key, bundle, "elsewhere.svc") is not None


def test_two_installations_share_no_secret(transport, secrets):
    Installer(transport, NAMESPACE).run(ALL)
    Installer(transport, "default").run(Wanted(signing_keys=True, secret_key=True, admin=True))
    other = SecretStore(transport, "default")
    for name in ("hami-signing-keys", "hami-secret-key", "hami-admin"):
        assert secrets.read(name) != other.read(name)


def test_running_again_changes_nothing(transport, secrets):
    Installer(transport, NAMESPACE).run(ALL)
    before = everything(secrets)
    Installer(transport, NAMESPACE).run(ALL)
    assert everything(secrets) == before


def test_a_certificate_that_ends_soon_is_signed_again_by_the_same_ca(transport, secrets):
    Installer(transport, NAMESPACE).run(ALL)
    authority = Signed(*(secrets.read("hami-ca")[name] for name in ("ca.crt", "ca.key")))
    ending = make_certificate(authority, NAMES, datetime.now(UTC) - timedelta(days=340))
    secrets.replace(TLS_SECRET, {"tls.crt": ending.certificate, "tls.key": ending.key})
    before = everything(secrets)
    Installer(transport, NAMESPACE).run(ALL)
    after = everything(secrets)
    assert after[TLS_SECRET]["tls.crt"] != ending.certificate
    assert after[TLS_SECRET]["ca.crt"] == authority.certificate
    del before[TLS_SECRET], after[TLS_SECRET]
    assert after == before


def test_only_what_is_wanted_is_made(transport, secrets):
    Installer(transport, NAMESPACE).run(Wanted(secret_key=True))
    made = {name for name, files in everything(secrets).items() if files is not None}
    assert made == {"hami-secret-key"}


def test_a_ca_without_its_key_is_said_and_left_alone(transport, secrets):
    secrets.create("hami-ca", {"ca.crt": b"x"})
    with pytest.raises(SetupFailed, match=r"hami-ca: ca\.crt or ca\.key is missing"):
        Installer(transport, NAMESPACE).run(ALL)
    assert secrets.read("hami-ca") == {"ca.crt": b"x"}
    assert secrets.read(TLS_SECRET) is None


def test_a_webhook_of_another_name_is_not_given_our_ca(transport):
    path = f"{CONFIGURATIONS}/hami-webhook"
    rename = [{"op": "replace", "path": "/webhooks/0/name", "value": "other.example.io"}]
    transport.send(Request("PATCH", path, body=rename, content_type="application/json-patch+json"))
    with pytest.raises(ClusterError):
        Installer(transport, NAMESPACE).run(ALL)


@pytest.mark.parametrize(("days", "expected"), [(0, False), (334, False), (336, True), (400, True)])
def test_it_is_renewed_a_month_before_it_ends(days, expected):
    authority = make_authority(NOW)
    signed = make_certificate(authority, NAMES, NOW)
    later = NOW + timedelta(days=days)
    assert must_be_renewed(signed.certificate, authority.certificate, NAMES, later) is expected


def test_it_is_renewed_for_a_new_name_another_ca_or_rubbish():
    authority = make_authority(NOW)
    signed = make_certificate(authority, NAMES, NOW).certificate
    assert must_be_renewed(signed, authority.certificate, (*NAMES, "new"), NOW)
    assert must_be_renewed(signed, make_authority(NOW).certificate, NAMES, NOW)
    assert must_be_renewed(b"rubbish", authority.certificate, NAMES, NOW)
