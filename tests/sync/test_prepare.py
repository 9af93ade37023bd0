"""``prepare`` brings a database up to date and makes the first admin, however often it runs."""

from __future__ import annotations

import threading

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections
from pytest_django.fixtures import Settings

from hami_web.access.models import User
from hami_web.sync.management.commands.prepare import LOCK

PASSWORD = "wood-lamp-river-41"


@pytest.mark.django_db
def test_the_first_admin_is_made_once(settings: Settings) -> None:
    settings.ADMIN_PASSWORD = PASSWORD
    call_command("prepare", admin="boss", verbosity=0)
    settings.ADMIN_PASSWORD = "another-lamp-river-41"
    call_command("prepare", admin="second", verbosity=0)
    assert [user.username for user in User.objects.all()] == ["boss"]
    assert User.objects.get().check_password(PASSWORD)


@pytest.mark.django_db
def test_without_a_password_no_admin_is_made(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ADMIN_PASSWORD = ""
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    with pytest.raises(CommandError, match="no password"):
        call_command("prepare", admin="boss", verbosity=0)
    assert not User.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_one_at_a_time_prepares_a_shared_database() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("needs PostgreSQL: HAMI_TEST_DATABASE_URL")
    done = threading.Event()

    def prepare() -> None:
        call_command("prepare", verbosity=0)
        done.set()
        connections.close_all()

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        thread = threading.Thread(target=prepare)
        thread.start()
        assert not done.wait(1)
        cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
    thread.join(30)
    assert done.is_set()
