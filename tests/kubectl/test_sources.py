"""The web service and the annotations give equal answers."""

from __future__ import annotations

import json

import pytest

from tests.kubectl.conftest import Call

VERBS = (
    ("node", "list"),
    ("node", "detail", "node-a"),
    ("device", "list"),
    ("device", "detail", "GPU-1"),
    ("reservation", "list"),
    ("reservation", "list", "-A"),
    ("reservation", "detail", "train"),
    ("map",),
    ("drift",),
    ("whatif", "--profile", "3g.20gb"),
    ("whatif", "--profile", "3g.20gb", "--count", "4"),
    ("whatif", "--memory", "9000", "--devices", "2"),
    ("plan", "drain", "--profile", "7g.40gb"),
    ("plan", "drain", "--profile", "1g.5gb", "--count", "100"),
)


def test_offline_answers_equal_online_answers(
    call: Call, online: tuple[str, ...], offline: tuple[str, ...]
) -> None:
    for verb in VERBS:
        asked, read = call(*online, *verb, "-o", "json"), call(*offline, *verb, "-o", "json")
        assert asked.code in (0, 1), (verb, asked.err)
        assert json.loads(read.out) == json.loads(asked.out), verb
        assert read.code == asked.code, verb
        assert "from annotations" in read.err
        assert not asked.err


def test_a_web_service_that_is_down_is_replaced_by_annotations(
    call: Call, offline: tuple[str, ...]
) -> None:
    ended = call("--server", "http://127.0.0.1:9", *offline, "node", "list")
    assert ended.code == 0
    assert "node-a" in ended.out
    assert "does not answer" in ended.err
    assert "from annotations" in ended.err


def test_a_refused_token_is_an_error_and_nothing_is_read_instead(
    call: Call, online: tuple[str, ...], offline: tuple[str, ...]
) -> None:
    ended = call(*online, *offline, "--token", "wrong", "node", "list")
    assert ended.code == 2
    assert "401" in ended.err
    assert "from annotations" not in ended.err


def test_a_problem_names_field_value_and_what_is_allowed(
    call: Call, online: tuple[str, ...]
) -> None:
    ended = call(*online, "plan", "drain", "--profile", "9g.9gb")
    assert ended.code == 2
    assert "profile" in ended.err
    assert "9g.9gb" in ended.err
    assert "3g.20gb" in ended.err


def test_lists_longer_than_a_page_are_read_to_their_end(
    call: Call, online: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = call(*online, "device", "list")
    monkeypatch.setattr("hami_web.kubectl.rest.PAGE", 1)
    assert call(*online, "device", "list").out == whole.out
    assert len(whole.out.splitlines()) == 4


def test_why_offline_asks_the_extenders_rules_now(call: Call, offline: tuple[str, ...]) -> None:
    ended = call(*offline, "why", "waits", "-o", "json")
    assert ended.code == 1
    (said,) = json.loads(ended.out)
    assert said["outcome"] == "refused"
    assert said["explanation"]["nodes_asked"] == 2
    bound = call(*offline, "why", "team/train", "-o", "json")
    assert bound.code == 0
    assert json.loads(bound.out)[0]["node"] == "node-a"


def test_no_kubeconfig_and_no_server_is_an_error_that_says_so(call: Call) -> None:
    ended = call("node", "list")
    assert ended.code == 2
    assert "Kubernetes configuration" in ended.err


def test_a_migration_check_cannot_be_done_from_annotations(
    call: Call, offline: tuple[str, ...]
) -> None:
    ended = call(*offline, "migrate", "check")
    assert ended.code == 2
    assert "--server" in ended.err


@pytest.mark.parametrize("value", ["0", "101", "-1", "x"])
def test_a_count_that_makes_no_sense_is_refused_with_what_is_allowed(
    call: Call, value: str
) -> None:
    ended = call("whatif", "--profile", "3g.20gb", f"--count={value}")
    assert ended.code == 2
    assert "1…100" in ended.err
