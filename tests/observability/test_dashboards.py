"""Grafana's dashboards: sound JSON, expressions that parse, series that exist, joins that hold."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.dashboards import DASHBOARDS
from tests.deploy.dashboards.grafana import COLUMNS, LANGUAGES, written
from tests.observability.known import known, unknown, used

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "observability" / "grafana"
SAMPLES = Path(__file__).with_name("dashboards.test.yaml")
FILES = sorted(FOLDER.glob("*/*.json"))
VARIABLES = {"$__rate_interval": "5m", "$node": ".*", "$namespace": ".*", "$agent": ".*"}
promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool: apt-get install prometheus"
)


def panels(model: dict[str, Any]) -> list[dict[str, Any]]:
    return [panel for panel in model["panels"] if panel["type"] != "row"]


def expressions() -> Iterator[tuple[str, str]]:
    """Title and expression of every query, with variables as they are at first."""
    for path in sorted(FOLDER.glob("en/*.json")):
        for panel in panels(json.loads(path.read_text())):
            for target in panel["targets"]:
                yield panel["title"], with_values(target["expr"])


def with_values(expr: str) -> str:
    for name, value in VARIABLES.items():
        expr = expr.replace(name, value)
    return expr


def run(*command: object) -> None:
    done = subprocess.run(
        [str(part) for part in command], check=False, capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()


def test_every_dashboard_is_there_in_every_language():
    names = {f"{language}/hami-{d.name}.json" for d in DASHBOARDS for language in LANGUAGES}
    assert {str(path.relative_to(FOLDER)) for path in FILES} == names
    assert len({json.loads(path.read_text())["uid"] for path in FILES}) == len(FILES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_dashboard_is_one_that_grafana_lays_out_without_overlap(path):
    model = json.loads(path.read_text())
    assert len(model["uid"]) <= 40
    assert model["schemaVersion"] >= 39
    numbers = [panel["id"] for panel in model["panels"]]
    assert len(numbers) == len(set(numbers))
    taken: set[tuple[int, int]] = set()
    for panel in model["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= COLUMNS
        columns = range(place["x"], place["x"] + place["w"])
        cells = {(x, y) for x in columns for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_panel_has_a_title_a_text_and_the_chosen_data_source(path):
    model = json.loads(path.read_text())
    variables = {variable["name"] for variable in model["templating"]["list"]}
    for panel in panels(model):
        assert panel["title"]
        assert panel["description"]
        letters = [target["refId"] for target in panel["targets"]]
        assert letters
        assert len(letters) == len(set(letters))
        for target in panel["targets"]:
            assert target["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    text = json.dumps(model["panels"])
    named = set(re.findall(r"\$\{?([a-z]+)\b", text)) | {"datasource"}
    assert named == variables


def test_languages_differ_in_texts_alone():
    for dashboard in DASHBOARDS:
        here, there = (json.loads(written(dashboard, language)) for language in LANGUAGES)
        for one, other in zip(panels(here), panels(there), strict=True):
            assert [t["expr"] for t in one["targets"]] == [t["expr"] for t in other["targets"]]
            assert one["description"] != other["description"]


def test_every_expression_uses_series_and_labels_that_exist():
    names = known(())
    for title, expr in expressions():
        assert used(expr), title
        assert not unknown(expr, names), title
    for dashboard in DASHBOARDS:
        for variable in dashboard.variables:
            name, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable.query).groups()
            assert label in names[name] | {"instance"}


@promtool
def test_every_expression_parses(tmp_path):
    rules = [
        {"record": f"panel:{number}", "expr": expr}
        for number, (_, expr) in enumerate(expressions())
    ]
    assert len(rules) > 40
    assert "$" not in "".join(rule["expr"] for rule in rules).replace('"$1"', "")
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    run("promtool", "check", "rules", path)


@promtool
def test_joins_give_each_pod_what_its_instance_did_while_it_had_it(tmp_path):
    """What the samples expect of a panel, named by its title, is asked of its own expression."""
    shipped = dict(expressions())
    document = yaml.safe_load(SAMPLES.read_text())
    for test in document["tests"]:
        for asked in test["promql_expr_test"]:
            asked["expr"] = shipped[asked.pop("panel")]
    path = tmp_path / "test.yaml"
    path.write_text(yaml.safe_dump(document))
    run("promtool", "test", "rules", path)
