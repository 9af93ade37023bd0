"""What-if and drain plans on pages: the answers are the planners' own, and names are kept."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, connection
from django.test import Client

from hami_web.core.policy import SchedulingPolicy
from hami_web.dashboard.wish import InvalidWish, Wish, parse_wish
from hami_web.planning.whatif import Question, ask

from .given import GivenMap
from .test_drawing import GPU, IDENTITY, drawn, node, pod

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _cluster(live: GivenMap) -> None:
    """One of two GPUs is scattered: 3g.20gb fits on the other one only."""
    live.show(drawn([node()], [pod("a", 0, 1, IDENTITY), pod("b", 4, 1)]))


def body(client: Client, path: str, status: int = 200) -> str:
    response = client.get(path)
    assert response.status_code == status
    return response.content.decode()


@pytest.mark.parametrize(
    ("text", "wish"),
    [
        ("3g.20gb", Wish("3g.20gb")),
        ("3G.20GB x2", Wish("3g.20gb", pods=2)),
        ("1g.5gb+me \N{MULTIPLICATION SIGN} 3", Wish("1g.5gb+me", pods=3)),
        ("20000", Wish(memory_mib=20000)),
        ("20 GiB*4", Wish(memory_mib=20480, pods=4)),
        ("  4864MiB ", Wish(memory_mib=4864)),
    ],
)
def test_a_wish_is_read_as_people_type_it(text: str, wish: Wish) -> None:
    assert parse_wish(text) == wish


@pytest.mark.parametrize(
    "text", ["0", "3g", "20 GB", "x2", "3g.20gb x0", "3g.20gb x65", "-1", "1e3"]
)
def test_a_wish_that_means_nothing_is_refused(client: Client, text: str) -> None:
    with pytest.raises(InvalidWish):
        parse_wish(text)
    response = client.get("/what-if", {"wish": text})
    assert response.status_code == 400
    assert "a profile as 3g.20gb, or memory as" in response.content.decode()


@pytest.mark.parametrize("devices", ["0", "65", "x", "", "1.5", "\N{SUPERSCRIPT TWO}"])
def test_a_number_of_devices_out_of_bounds_is_refused(client: Client, devices: str) -> None:
    response = client.get("/what-if", {"wish": "1g.5gb", "devices": devices})
    assert response.status_code == 400
    assert "a whole number in 1…64" in response.content.decode()


def test_what_fits_is_drawn_where_the_planner_puts_it(client: Client, live: GivenMap) -> None:
    records = live.current().records
    answer = ask(records, Question(parse_wish("3g.20gb").request()), SchedulingPolicy())
    (place,) = answer.placed[0].choice.reservations
    page = body(client, "/what-if?wish=3g.20gb")
    assert "Yes: 3g.20gb fits now" in page
    assert page.count('<a class="cell held ') == 1
    assert f'href="/gpus/{place.gpu_uuid}"' in page
    assert f"<td><code>{place.placement}</code></td>" in page


def test_pods_that_do_not_all_fit_show_what_is_in_the_way(client: Client) -> None:
    page = body(client, "/what-if?wish=3g.20gb+x3")
    assert "Only 2 of 3 Pods fit now" in page
    assert "What is in the way" in page
    assert '<th scope="row">team/' in page
    assert "CardMigTopologyInfeasible" in page


def test_a_wish_beyond_every_gpu_names_the_reason(client: Client) -> None:
    page = body(client, "/what-if?wish=100+GiB")
    assert "No: 102400 MiB does not fit now" in page
    assert "CardInsufficientMemory" in page


def test_asking_changes_nothing(client: Client, live: GivenMap) -> None:
    before = live.current()
    body(client, "/what-if?wish=1g.5gb+x5")
    assert live.current() is before


def test_a_drain_plan_shows_pods_pictures_and_commands(client: Client) -> None:
    page = body(client, "/drain-plan?profile=3g.20gb&count=3")
    assert "1 Pod to move for 3 \N{MULTIPLICATION SIGN} 3g.20gb" in page
    assert "No plan with fewer moves exists." in page
    assert page.count("<h3>after</h3>") >= 1
    assert "kubectl annotate node n1" in page
    assert "/eviction" in page


def test_placements_that_are_free_need_no_moves(client: Client) -> None:
    page = body(client, "/drain-plan?profile=3g.20gb&count=2")
    assert "Nothing has to move" in page
    assert "kubectl" not in page


def test_a_plan_that_cannot_be_is_told(client: Client) -> None:
    page = body(client, "/drain-plan?profile=7g.40gb&count=3")
    assert "No set of moves frees 3 placements of 7g.40gb" in page


@pytest.mark.parametrize(
    ("query", "allowed"),
    [
        ("profile=9g.1gb", "1g.5gb"),
        ("profile=1g.5gb&count=0", "1…64"),
        ("profile=1g.5gb&count=x", "1…64"),
    ],
)
def test_a_drain_question_that_means_nothing_is_refused(
    client: Client, query: str, allowed: str
) -> None:
    assert allowed in body(client, f"/drain-plan?{query}", 400)


def test_without_the_database_no_plan_is_made(client: Client) -> None:
    def broken(*_: object) -> None:
        raise DatabaseError("gone")

    with connection.execute_wrapper(lambda *_: broken()):
        page = client.get("/drain-plan?profile=3g.20gb&count=3").content.decode()
    assert "No plan can be made now" in page
    assert "kubectl" not in page


@pytest.mark.parametrize(
    "path", ["/what-if?wish=3g.20gb+x3", "/drain-plan?profile=3g.20gb&count=3"]
)
def test_pods_of_other_namespaces_stay_unnamed(client: Client, settings, path: str) -> None:
    settings.ANONYMOUS_NAMESPACES = ("elsewhere",)
    page = body(client, path)
    assert "unavailable" in page
    assert "team" not in page
    assert GPU in page
