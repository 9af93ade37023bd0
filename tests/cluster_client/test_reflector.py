"""List-and-watch against a server with faults."""

from __future__ import annotations

import threading
import time

import pytest

from hami_web.cluster import resources as resources_module
from hami_web.cluster.errors import Expired, OutcomeUnclear
from hami_web.cluster.listing import Uids
from hami_web.cluster.ports import Bookmark, Changed, Page, Removed
from hami_web.cluster.reflector import Reflector, Timing
from hami_web.cluster.resources import nodes
from hami_web.cluster.views import NodeView, ObjectMeta
from hami_web.simulator.faults import RequestMatch

QUICK = Timing(page_size=2, backoff_first_s=0.01, backoff_most_s=0.05)


class Store:
    """Keeps what a reflector gives it, by UID, and the order of calls."""

    def __init__(self):
        self.by_uid = {}
        self.calls = []

    def replace(self, items, *, listed_at):
        self.by_uid = {item.metadata.uid: item for item in items}
        self.calls.append(("replace", self.names()))

    def put(self, item):
        self.by_uid[item.metadata.uid] = item
        self.calls.append(("put", item.metadata.uid))

    def remove(self, metadata):
        self.by_uid.pop(metadata.uid, None)
        self.calls.append(("remove", metadata.uid))

    def names(self):
        return sorted(item.metadata.name for item in self.by_uid.values())


class Script:
    """A source that plays prepared lists and watches; at the end it stays silent."""

    def __init__(self, pages, watches):
        self.pages = list(pages)
        self.watches = list(watches)
        self.seen = []

    def list_page(self, *, limit, more):
        self.seen.append(("list", more))
        page = self.pages.pop(0)
        if isinstance(page, Exception):
            raise page
        return page

    def watch(self, *, resource_version, timeout_s):
        self.seen.append(("watch", resource_version))
        assert 240 <= timeout_s <= 300
        if not self.watches:
            raise OutcomeUnclear("silence")
        return Played(self.watches.pop(0))


class Played:
    def __init__(self, events):
        self.events = events

    def __iter__(self):
        for event in self.events:
            if isinstance(event, Exception):
                raise event
            yield event

    def close(self):
        pass


def node(name, uid, version="1"):
    return NodeView(ObjectMeta(name=name, uid=uid, resource_version=version))


def eventually(condition, within_s=5.0):
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.005)


@pytest.fixture
def store():
    return Store()


@pytest.fixture
def run(store):
    started = []

    def start(source, timing=QUICK):
        reflector = Reflector("nodes", source, store, timing=timing)
        started.append(reflector)
        reflector.start()
        return reflector

    yield start
    for reflector in started:
        reflector.stop()


def test_a_list_of_several_pages_arrives_in_one_step(run, store, transport, make_node):
    for name in ("a", "b", "c", "d", "e"):
        make_node(name)
    assert run(nodes(transport)).synced.wait(5)
    assert store.calls[0] == ("replace", ["a", "b", "c", "d", "e"])


def test_changes_after_the_list_arrive(run, store, transport, client, make_node):
    reflector = run(nodes(transport))
    reflector.synced.wait(5)
    make_node("a")
    eventually(lambda: store.names() == ["a"])
    client.annotate_node(client.get_node("a"), {"k": "v"})
    eventually(lambda: [n.annotations for n in store.by_uid.values()] == [{"k": "v"}])
    assert reflector.age_s() < 5


def test_history_that_is_gone_leads_to_a_new_list(run, store, server, transport, make_node):
    reflector = run(nodes(transport))
    reflector.synced.wait(5)
    server.faults.answer(503, RequestMatch(verb="watch"), times=3)
    server.close_connections()
    make_node("a")
    server.compact()
    eventually(lambda: store.names() == ["a"])
    assert reflector.relists >= 2


def test_a_broken_connection_resumes_without_a_list(run, store, server, transport, make_node):
    reflector = run(nodes(transport))
    reflector.synced.wait(5)
    server.close_connections()
    make_node("a")
    eventually(lambda: store.names() == ["a"])
    assert reflector.relists == 1


def test_an_error_event_of_410_lists_again(run, store):
    script = Script(
        [Page((node("a", "1"),), "10", ""), Page((node("b", "2"),), "20", "")],
        [[Expired("too old")]],
    )
    run(script)
    eventually(lambda: store.names() == ["b"])
    assert script.seen[:3] == [("list", ""), ("watch", "10"), ("list", "")]


def test_410_within_a_list_starts_it_over(run, store):
    script = Script(
        [
            Page((node("a", "1"),), "10", "token"),
            Expired("token"),
            Page((node("b", "2"),), "20", ""),
        ],
        [],
    )
    run(script)
    eventually(lambda: store.calls[:1] == [("replace", ["b"])])


def test_a_bookmark_moves_the_version(run):
    script = Script([Page((), "10", "")], [[Bookmark("99")]])
    run(script)
    eventually(lambda: ("watch", "99") in script.seen)


def test_a_name_with_another_uid_is_removed_and_added(run, store):
    script = Script([Page((node("a", "old"),), "10", "")], [[Changed(node("a", "new", "11"))]])
    run(script)
    eventually(lambda: store.calls[1:3] == [("remove", "old"), ("put", "new")])


def test_a_late_removal_of_an_old_uid_keeps_the_new_object(run, store):
    gone = Removed(ObjectMeta(name="a", uid="old", resource_version="12"))
    script = Script(
        [Page((node("a", "old"),), "10", "")], [[Changed(node("a", "new", "11")), gone]]
    )
    run(script)
    eventually(lambda: ("watch", "12") in script.seen)
    assert list(store.by_uid) == ["new"]


def test_stop_ends_a_blocked_watch_at_once(run, transport):
    reflector = run(nodes(transport))
    reflector.synced.wait(5)
    began = time.monotonic()
    reflector.stop()
    assert time.monotonic() - began < 1


def test_errors_are_spaced_out(run, store, server, transport):
    server.faults.answer(500, RequestMatch(verb="list"), times=3)
    reflector = run(nodes(transport))
    assert reflector.synced.wait(5)
    assert reflector.failures == 3
    assert [entry for entry in server.audit if entry.verb == "list"]


def test_a_connection_that_falls_silent_is_given_up(
    run, store, server, transport, make_node, monkeypatch
):
    monkeypatch.setattr(resources_module, "WATCH_SILENCE_S", 0.1)
    server.faults.delay(1, RequestMatch(verb="watch"))
    timing = Timing(watch_least_s=0, watch_most_s=0, backoff_first_s=0.01)
    reflector = run(nodes(transport), timing)
    reflector.synced.wait(5)
    make_node("a")
    eventually(lambda: store.names() == ["a"])
    assert reflector.failures >= 1


def test_a_new_list_is_taken_from_time_to_time(run, store):
    script = Script([Page((), "10", ""), Page((node("b", "2"),), "20", "")], [[], []])
    run(script, Timing(relist_after_s=0, backoff_first_s=0.01))
    eventually(lambda: store.names() == ["b"])


def test_a_list_is_taken_at_once_when_it_is_asked_for(run, store, transport, make_node):
    make_node("a")
    reflector = run(nodes(transport))
    eventually(lambda: store.names() == ["a"])
    asked_at = time.monotonic()
    assert not reflector.listed_since(asked_at)
    reflector.relist()
    eventually(lambda: reflector.listed_since(asked_at))
    assert time.monotonic() - asked_at < 1
    make_node("b")
    eventually(lambda: store.names() == ["a", "b"])


def test_a_list_that_was_asked_for_and_failed_is_taken_again(
    run, store, server, transport, make_node
):
    make_node("a")
    reflector = run(nodes(transport))
    eventually(lambda: store.names() == ["a"])
    server.faults.answer(500, RequestMatch(verb="list"), times=3)
    asked_at = time.monotonic()
    reflector.relist()
    eventually(lambda: reflector.listed_since(asked_at))
    assert reflector.failures == 3


def test_nothing_of_a_list_counts_before_its_last_page(run, store):
    script = Script(
        [
            Page((node("a", "1"),), "10", "token"),
            OutcomeUnclear("the second page is lost"),
            Page((node("a", "1"), node("b", "2")), "20", ""),
        ],
        [[]],
    )
    reflector = run(script)
    assert reflector.synced.wait(5)
    assert store.calls == [("replace", ["a", "b"])]


def test_a_sink_that_leaves_items_unread_fails_and_is_given_a_new_list(store):
    class Half(Store):
        def replace(self, items, *, listed_at):
            if not self.calls:
                self.calls.append(("first", next(iter(items)).metadata.name))
                return
            super().replace(items, listed_at=listed_at)

    sink = Half()
    pages = [Page((node("a", "1"), node("b", "2")), "10", "") for _ in range(2)]
    reflector = Reflector("nodes", Script(pages, [[]]), sink, timing=QUICK)
    reflector.start()
    try:
        assert reflector.synced.wait(5)
    finally:
        reflector.stop()
    assert sink.calls == [("first", "a"), ("replace", ["a", "b"])]


def test_a_reflector_that_stops_asks_for_no_further_page(store):
    stopping = threading.Event()

    class Endless(Script):
        def list_page(self, *, limit, more):
            self.seen.append(("list", more))
            stopping.set()
            assert reflector._stopped.wait(5)
            return Page((node("a", "1"),), "10", "token")

    script = Endless([], [])
    reflector = Reflector("nodes", script, store, timing=QUICK)
    reflector.start()
    assert stopping.wait(5)
    reflector.stop()
    assert script.seen == [("list", "")]
    assert store.calls == []


def test_a_list_keeps_the_texts_that_were_known_before():
    before, after = Uids(), Uids()
    for uids, listed in ((before, "ab"), (after, "bc")):
        for name in listed:
            uids.set(ObjectMeta(name=f"name-{name}", namespace="ns", uid=f"uid-{name}"))
    shared = after.sharing(before)
    known = {name: text for named in before._uids.values() for name, text in named.items()}
    kept = {name: text for named in shared._uids.values() for name, text in named.items()}
    assert kept == {"name-b": "uid-b", "name-c": "uid-c"}
    assert kept["name-b"] is known["name-b"]
