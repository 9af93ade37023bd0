"""The store keeps as much history as it says, and nothing is written for nothing."""

from __future__ import annotations

import pytest

from hami_web.simulator.documents import JsonObject
from hami_web.simulator.problems import ApiProblem
from hami_web.simulator.resources import CONFIG_MAPS
from hami_web.simulator.store import Store


def config_map(name: str) -> JsonObject:
    return {"metadata": {"namespace": "default", "name": name}}


def test_versions_grow_by_one_with_each_write() -> None:
    store = Store()
    versions = [store.create(CONFIG_MAPS, config_map(name)).version for name in "abc"]
    assert versions == [versions[0], versions[0] + 1, versions[0] + 2]


def test_history_beyond_the_limit_is_gone() -> None:
    store = Store(history_limit=5)
    first = store.create(CONFIG_MAPS, config_map("p0")).version
    for number in range(1, 11):
        store.create(CONFIG_MAPS, config_map(f"p{number}"))
    with pytest.raises(ApiProblem) as caught:
        store.changes_since(CONFIG_MAPS, first)
    assert caught.value.code == 410
    names = [change.current.key[1] for change in store.changes_since(CONFIG_MAPS, first + 5)]
    assert names == ["p6", "p7", "p8", "p9", "p10"]


def test_an_edit_that_raises_leaves_the_object_as_it_was() -> None:
    store = Store()
    before = store.create(CONFIG_MAPS, config_map("a"))

    def spoil(document: JsonObject) -> JsonObject:
        document["data"] = {"k": "v"}
        raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        store.change(CONFIG_MAPS, before.key, spoil)
    assert store.get(CONFIG_MAPS, before.key) == before
