"""A role that must not start says why in one line for each cause, and ends with status 2."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from hami_web.extender import issuing
from hami_web.extender.serving import ServingCertificate, UnusablePair
from tests.roles.processes import Role, manage

NOW = issuing.now()


def given(folder: Path) -> dict[str, str]:
    """Files that are wrong, by a name for them."""
    authority = issuing.make_authority(NOW)
    one, other = (issuing.make_certificate(authority, ["localhost"], NOW) for _ in range(2))
    texts = {
        "empty": "\n",
        "yaml": "scheduling: {placementPolicy: [",
        "policy": "scheduling: {placementPolicy: guess}",
        "crt": one.certificate.decode(),
        "key": other.key.decode(),
        "junk": "no key",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return {name: str(folder / name) for name in texts}


STARTS = {
    "a secret is missing": ("web", {"HAMI_SECRET_KEY_FILE": "/nowhere"}, ["SecretUnreadable"]),
    "a secret is empty": ("worker", {"HAMI_SECRET_KEY_FILE": "{empty}"}, ["SecretUnreadable"]),
    "the policy is no YAML": (
        *("extender", {"HAMI_POLICY_FILE": "{yaml}", "HAMI_LOG_FORMAT": "json"}),
        ["PolicyInvalid"],
    ),
    "no such database": ("web", {"HAMI_DATABASE_URL": "mysql://h/n"}, ["SettingInvalid"]),
    "policy, certificate and keys are wrong": (
        "extender",
        {
            "HAMI_POLICY_FILE": "{policy}",
            "HAMI_EXTENDER_TLS_CERT": "{crt}",
            "HAMI_EXTENDER_TLS_KEY": "{key}",
            "HAMI_SIGNING_KEYS": "{junk}",
        },
        ["PolicyInvalid", "CertificateUnusable", "SigningKeysUnusable"],
    ),
    "nothing says where Kubernetes is": (
        *("worker", {"HAMI_KUBECONFIG": "/nowhere"}),
        ["KubernetesConfigInvalid"],
    ),
    "the database's folder cannot be written": (
        *("prepare", {"HAMI_DATA_DIR": "/proc/hami"}),
        ["VolumeNotWritable"],
    ),
}


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Role]]:
    """All of them at once: each is alone with what it reads."""
    folder = tmp_path_factory.mktemp("starts")
    files = given(folder)
    with ExitStack() as closing:
        roles = {}
        for number, (title, (command, environment, _)) in enumerate(STARTS.items()):
            own = folder / str(number)
            own.mkdir()
            filled = {name: text.format(**files) for name, text in environment.items()}
            roles[title] = manage(own, filled, command)
            closing.callback(roles[title].close)
        yield roles


@pytest.mark.parametrize("title", STARTS)
def test_a_fault_of_the_configuration_is_one_line_and_a_status(
    started: dict[str, Role], title: str
) -> None:
    role, expected = started[title], STARTS[title][2]
    assert role.ended() == 2, role.lines
    texts = [json.loads(line)["message"] if line[0] == "{" else line for line in role.lines]
    assert len(texts) == len(expected), texts
    for fault in expected:
        assert [text for text in texts if f"{fault}: HAMI_" in text or f"{fault}: /" in text], texts
    assert "Traceback" not in "".join(texts)


def test_a_certificate_that_was_replaced_by_a_wrong_pair_stays_in_use(tmp_path: Path) -> None:
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    with pytest.raises(UnusablePair, match=r"tls.crt: No such file"):
        ServingCertificate(certificate, key)
    authority = issuing.make_authority(NOW)
    old = issuing.make_certificate(authority, ["localhost"], NOW - timedelta(days=900))
    good = issuing.make_certificate(authority, ["localhost"], NOW)
    certificate.write_bytes(old.certificate)
    key.write_bytes(old.key)
    serving = ServingCertificate(certificate, key)
    assert serving.problem().startswith(f"CertificateUnusable: {certificate}: it ended at ")
    before = serving.context()
    certificate.write_bytes(good.certificate)  # the key follows a moment later
    assert serving.context() is before
    key.write_bytes(good.key)
    assert serving.problem() == ""
    assert serving.context() is not before
    key.write_text(base64.b64encode(b"x").decode())
    assert serving.problem() == ""
