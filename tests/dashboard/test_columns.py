"""Columns of the large tables are chosen in the address, without scripts."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from hami_web.dashboard import columns

from .filled import fill_tables, filled_map
from .given import GivenMap

pytestmark = [pytest.mark.django_db]
TABLES = {
    "/?view=table&q=n1": columns.MAP, "/alerts?show=all": columns.ALERTS, "/audit?actor=ann":
    columns.AUDIT, "/drift?": columns.DRIFT, "/namespaces?days=7": columns.NAMESPACES,
}  # fmt: skip
each_table = pytest.mark.parametrize(("path", "table"), TABLES.items(), ids=list(TABLES))


@pytest.fixture(autouse=True)
def _cluster(live: GivenMap, settings) -> None:
    settings.ANONYMOUS_ROLE = "admin"
    live.show(filled_map(2))
    fill_tables(2)


def heads(page: str) -> list[str]:
    head = re.search(r"<thead>.*?</thead>", page, re.DOTALL)
    return re.findall(r"<th [^>]*>(.*?)</th>", head[0]) if head else []


def widths(page: str) -> set[int]:
    """How many columns the rows of the body have."""
    body = re.search(r"</thead>.*?</table>", page, re.DOTALL)
    lines = re.findall(r"<tr.*?</tr>", body[0], re.DOTALL) if body else []
    return {len(re.findall(r"<t[dh][ >]", line)) for line in lines}


@each_table
def test_a_table_has_every_column_until_some_are_chosen(
    client: Client, path: str, table: columns.Table
) -> None:
    page = client.get(path).content.decode()
    assert heads(page) == [str(title) for title in table.titles.values()]
    assert widths(page) == {len(table.titles)}
    assert page.count('<input type="checkbox" name="columns"') == len(table.titles) - 1
    assert page.count(" checked> ") == len(table.titles) - 1


@each_table
def test_chosen_columns_are_shown_beside_the_one_that_names_the_row(
    client: Client, path: str, table: columns.Table
) -> None:
    others = [name for name in table.titles if name != table.fixed]
    wanted = [others[0], others[-1]]
    left = [str(table.titles[name]) for name in table.titles if name in (*wanted, table.fixed)]
    repeated = "".join(f"&columns={name}" for name in wanted)
    for query in (repeated, f"&columns={','.join(wanted)}"):
        page = client.get(f"{path}{query}").content.decode()
        assert heads(page) == left
        assert widths(page) == {3}
        assert page.count(" checked> ") == 2
    # The form of the choice keeps what else the address says, and files have columns of their own.
    form = page.partition('<details class="columns">')[2].partition("</form>")[0]
    for pair in filter(None, path.partition("?")[2].split("&")):
        name, _, value = pair.partition("=")
        assert f'<input type="hidden" name="{name}" value="{value}">' in form
    assert not re.search(r'href="[^"]*columns=[^"]*" download', page)


@pytest.mark.parametrize("path", ["/?view=table", "/audit?", "/namespaces?"])
def test_another_search_keeps_the_columns(client: Client, path: str) -> None:
    column = {"/audit?": "outcome"}.get(path, "memory")
    page = client.get(f"{path}&columns={column}&columns={column}").content.decode()
    form = page.partition('class="controls"')[2].partition("</form>")[0]
    assert form.count(f'<input type="hidden" name="columns" value="{column}">') == 1


def test_links_between_views_of_the_map_keep_the_columns(client: Client) -> None:
    page = client.get("/?columns=pod").content.decode()
    assert 'href="?view=table&amp;columns=pod"' in page
    assert '<details class="columns">' not in page
    assert 'data-refresh="gpus"' in page


@each_table
def test_a_column_that_is_none_is_refused(client: Client, path: str, table: columns.Table) -> None:
    answer = client.get(f"{path}&columns=<colour>")
    assert answer.status_code == 400
    assert ", ".join(table.titles) in answer.content.decode()
