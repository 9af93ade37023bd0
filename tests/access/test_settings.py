"""What a deployment is told about its settings."""

from __future__ import annotations

import os
import subprocess
import sys
from ipaddress import ip_network
from pathlib import Path

import pytest

from hami_web.access.checks import check_access_policy, check_anonymous, check_proxies

ROOT = Path(__file__).parents[2]
PRODUCTION = {
    "HAMI_WEB_HTTPS": "true",
    "HAMI_PROXY_ADDRESSES": "10.0.0.0/8",
    "HAMI_ALLOWED_HOSTS": "gpus.example",
    "HAMI_SECRET_KEY": "k8s-" + "0123456789abcdefghijklmnopqrstuvwxyz" * 2,
    "HAMI_WEB_LISTEN": "0.0.0.0:8000",
}


def check(tmp_path: Path, **changes: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "check", "--deploy", "--fail-level", "WARNING"],
        env={**os.environ, "HAMI_DATA_DIR": str(tmp_path), **PRODUCTION, **changes},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_production_settings_leave_nothing_to_warn_of(tmp_path: Path) -> None:
    done = check(tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"HAMI_WEB_HTTPS": "false"}, "security.W"),
        ({"HAMI_PROXY_ADDRESSES": ""}, "hami.E012"),
        ({"HAMI_ANONYMOUS_ROLE": "viewer"}, "hami.W010"),
        ({"HAMI_PROXY_ADDRESSES": "10.0.0.1/8"}, "HAMI_PROXY_ADDRESSES"),
        ({"HAMI_ANONYMOUS_ROLE": "admin"}, "allowed: none, viewer"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, changes: dict[str, str], told: str) -> None:
    done = check(tmp_path, **changes)
    assert done.returncode != 0
    assert told in done.stderr


def test_a_header_that_no_proxy_may_send_is_an_error(settings) -> None:
    settings.PROXY_USER_HEADER = "X-User"
    assert [found.id for found in check_proxies()] == ["hami.E011"]
    settings.PROXY_ADDRESSES = (ip_network("10.0.0.1"),)
    assert check_proxies() == []


def test_a_policy_that_cannot_be_read_is_an_error(settings) -> None:
    settings.ACCESS_POLICY = {"roleGroups": {"root": []}}
    assert "access.roleGroups.root" in check_access_policy()[0].msg


@pytest.mark.parametrize(
    ("listen", "warned"),
    [("127.0.0.1:8000", False), ("[::1]:8000", False), ("localhost:1", False), ("0.0.0.0:1", True)],
)
def test_nobody_in_particular_reads_on_loopback_only(settings, listen: str, warned: bool) -> None:
    settings.ANONYMOUS_ROLE, settings.WEB_LISTEN = "viewer", listen
    assert bool(check_anonymous()) is warned
