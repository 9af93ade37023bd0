"""Databases by URL."""

from __future__ import annotations

import pytest

from hami_web.database import parse_database_url


def test_sqlite_takes_an_absolute_path_and_writes_without_upgrading_locks() -> None:
    database = parse_database_url("sqlite:////var/lib/hami/hami.sqlite3")
    assert database["NAME"] == "/var/lib/hami/hami.sqlite3"
    assert database["OPTIONS"]["transaction_mode"] == "IMMEDIATE"


def test_postgresql_takes_credentials_port_and_options() -> None:
    database = parse_database_url("postgresql://u:p%40ss@db:5433/hami?sslmode=require")
    wanted = {"USER": "u", "PASSWORD": "p@ss", "HOST": "db", "PORT": "5433", "NAME": "hami"}
    assert wanted.items() <= database.items()
    assert database["OPTIONS"] == {"sslmode": "require"}


@pytest.mark.parametrize("text", ["mysql://x/y", "postgresql://secret:pw@h", "", "sqlite://x"])
def test_anything_else_is_refused_without_repeating_the_password(text: str) -> None:
    with pytest.raises(ValueError, match="allowed: sqlite") as refused:
        parse_database_url(text)
    assert "pw" not in str(refused.value)
