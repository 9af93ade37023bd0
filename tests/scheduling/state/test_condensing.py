"""What is kept of listed Pods is all that the state reads."""

from __future__ import annotations

from hami_web.cluster.ports import Page, WatchStream
from hami_web.cluster.views import PodView
from hami_web.scheduling.condensing import CondensedPods
from hami_web.scheduling.pods import read_pod
from tests.builders import reservation
from tests.scheduling.state.cluster import pod


class Source:
    """Two Pods in one page."""

    def __init__(self) -> None:
        self.bound = pod("a", on="node-1", reservations=[reservation()], annotations={"x": "y"})
        self.waiting = pod("b", annotations={"x": "y"})

    def list_page(self, *, limit: int, more: str) -> Page[PodView]:
        return Page((self.bound, self.waiting), f"{limit}", more)

    def watch(self, *, resource_version: str, timeout_s: int) -> WatchStream[PodView]:
        raise NotImplementedError(resource_version, timeout_s)


def test_a_bound_pod_reads_the_same_without_the_rest() -> None:
    source = Source()
    whole = read_pod(source.bound)
    page = CondensedPods(source).list_page(limit=5, more="token")
    bound, _waiting = page.items
    assert read_pod(bound) == whole
    assert bound.container_specs() == []
    assert "x" not in bound.annotations
    assert (page.resource_version, page.more) == ("5", "token")


def test_a_waiting_pod_stays_whole() -> None:
    source = Source()
    _, waiting = CondensedPods(source).list_page(limit=5, more="").items
    assert waiting.annotations == {"x": "y"}
    assert len(waiting.container_specs()) == 1
