"""Celery's queue of files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from kombu import Connection

from hami_web.celery import app


@pytest.fixture
def connection(tmp_path: Path) -> Connection:
    folder = str(tmp_path)
    options = {"data_folder_in": folder, "data_folder_out": folder, "control_folder": folder}
    return app.connection_for_write("filesystem://localhost", transport_options=options)


def test_a_message_is_there_only_once_it_is_written_whole(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Any] = []
    rename = os.replace

    def look_first(draft: Path, name: Path) -> None:
        assert draft.read_bytes()
        found.append(queue.get(block=False) if queue.qsize() else None)
        rename(draft, name)

    monkeypatch.setattr(os, "replace", look_first)
    with connection, connection.SimpleQueue("q") as queue:
        queue.put({"n": 1})
        message = queue.get(block=True, timeout=5)
        message.ack()
        found.append(message.payload)
    assert found == [None, {"n": 1}]
