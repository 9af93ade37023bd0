"""The reflector's copy follows the server through every loss."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hami_web.simulator.client import ApiClient
from hami_web.simulator.cluster import wait_until
from hami_web.simulator.documents import JsonObject
from hami_web.simulator.faults import RequestMatch
from hami_web.simulator.reflector import Reflector
from hami_web.simulator.server import SimulatedApiServer

MAPS = "/api/v1/namespaces/default/configmaps"
Change = tuple[str | None, str | None]


class Followed:
    def __init__(self, client: ApiClient) -> None:
        self.changes: list[Change] = []
        self.reflector = Reflector(client, MAPS, self._note)

    def _note(self, old: JsonObject | None, new: JsonObject | None) -> None:
        self.changes.append((name_of(old), name_of(new)))

    def names(self) -> list[str]:
        return sorted(item["metadata"]["name"] for item in self.reflector.objects())


def name_of(item: JsonObject | None) -> str | None:
    return item["metadata"]["name"] if item else None


def make(client: ApiClient, name: str) -> None:
    client.create(MAPS, {"metadata": {"name": name}})


@pytest.fixture
def followed(client: ApiClient) -> Iterator[Followed]:
    make(client, "a")
    made = Followed(client)
    made.reflector.start()
    assert made.reflector.wait_until_synced(5)
    yield made
    made.reflector.stop()


def test_changes_are_told_as_old_and_new(client: ApiClient, followed: Followed) -> None:
    client.patch(f"{MAPS}/a", {"data": {"k": "v"}})
    client.delete(f"{MAPS}/a")
    wait_until(lambda: followed.changes == [(None, "a"), ("a", "a"), ("a", None)])


def test_what_happened_while_history_was_lost_is_found_by_a_new_list(
    server: SimulatedApiServer, client: ApiClient, followed: Followed
) -> None:
    server.faults.order("drop", RequestMatch(verb="watch"), times=None)
    server.close_connections()
    other = ApiClient(client._endpoint)
    other.delete(f"{MAPS}/a")
    make(other, "b")
    server.compact()
    server.faults.clear()
    wait_until(lambda: followed.names() == ["b"])
    other.close()
    assert ("a", None) in followed.changes


def test_a_refusal_by_http_410_starts_over(
    server: SimulatedApiServer, client: ApiClient, followed: Followed
) -> None:
    server.api.expired_watch_is_http = True
    server.faults.order("drop", RequestMatch(verb="watch"), times=None)
    server.close_connections()
    other = ApiClient(client._endpoint)
    make(other, "b")
    server.compact()
    server.faults.clear()
    wait_until(lambda: followed.names() == ["a", "b"])
    other.close()


def test_events_told_twice_leave_one_object(
    server: SimulatedApiServer, client: ApiClient, followed: Followed
) -> None:
    server.faults.order("duplicate-events", RequestMatch(verb="watch"))
    server.close_connections()
    other = ApiClient(client._endpoint)
    make(other, "b")
    wait_until(lambda: followed.names() == ["a", "b"])
    other.close()
