"""``manage.py configuration`` shows what a process would run with, and never a secret."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def shown(*arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "configuration", *arguments],
        env={"PATH": "/usr/bin", **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize("role", ["all", "extender"])
def test_value_origin_and_what_is_allowed_are_shown(role: str) -> None:
    rows = json.loads(shown("-o", "json", HAMI_LEASE_SECONDS="30", HAMI_ROLE=role))
    by_name = {row["name"]: row for row in rows}
    assert by_name["HAMI_LEASE_SECONDS"] == {
        "name": "HAMI_LEASE_SECONDS",
        "value": "30",
        "origin": "environment",
        "allowed": "3…120",
    }
    assert by_name["HAMI_NAMESPACE"]["origin"] == "default"
    assert by_name["HAMI_NAMESPACE"]["value"] == "hami-system"


@pytest.mark.parametrize("output", ["table", "json"])
def test_a_secret_is_never_shown(tmp_path: Path, output: str) -> None:
    file = tmp_path / "database"
    file.write_text("postgresql://hami:hunter2@db/hami\n")
    text = shown("-o", output, HAMI_SECRET_KEY="squeamish", HAMI_DATABASE_URL_FILE=str(file))
    assert "squeamish" not in text
    assert "hunter2" not in text
    assert text.count("(secret)") == 2


def test_the_extender_loads_no_rows_of_a_database() -> None:
    code = (
        "import django, sys; django.setup(); import hami_web.urls; "
        "loaded = [name for name in sys.modules if name.startswith('hami_web.')]; "
        "print([name for name in loaded if name.endswith('.models')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={
            "PATH": "/usr/bin",
            "DJANGO_SETTINGS_MODULE": "hami_web.settings",
            "HAMI_ROLE": "extender",
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() == "[]"
