"""Alerts and recording rules: they parse, fire when they should, and have runbooks."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.observability.known import known, unknown, used

ROOT = Path(__file__).parents[2]
RULES = sorted((ROOT / "deploy" / "observability" / "rules").glob("*.yaml"))
RUNBOOKS = ROOT / "docs" / "runbooks"
SAMPLES = Path(__file__).with_name("rules.test.yaml")
SECTIONS = ["Meaning", "Impact", "How to look", "Mend", "When it is safe to wait"]
promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool: apt-get install prometheus"
)


def rules() -> list[dict[str, Any]]:
    return [
        rule
        for path in RULES
        for group in yaml.safe_load(path.read_text())["groups"]
        for rule in group["rules"]
    ]


ALERTS = [rule for rule in rules() if "alert" in rule]
NAMES = [rule["alert"] for rule in ALERTS]
RECORDED = {rule["record"] for rule in rules() if "record" in rule}


@promtool
def test_the_rules_are_rules():
    done = subprocess.run(
        ["promtool", "check", "rules", *RULES], check=False, capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()


@promtool
def test_alerts_fire_and_joins_give_rows_as_the_samples_say():
    done = subprocess.run(
        ["promtool", "test", "rules", SAMPLES], check=False, capture_output=True, timeout=120
    )
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()


@pytest.mark.parametrize("name", NAMES)
def test_each_alert_is_tried_firing_and_quiet(name):
    tests = {test["name"]: test for test in yaml.safe_load(SAMPLES.read_text())["tests"]}
    [fires] = tests[f"{name} fires"]["promql_expr_test"]
    [quiet] = tests[f"{name} stays quiet"]["promql_expr_test"]
    assert fires["expr"] == quiet["expr"] == f'ALERTS{{alertname="{name}",alertstate="firing"}}'
    assert fires["exp_samples"]
    assert not quiet["exp_samples"]
    assert tests[f"{name} stays quiet"]["input_series"]


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.get("alert") or rule["record"])
def test_each_rule_uses_series_and_labels_that_exist(rule):
    assert used(rule["expr"])
    assert not unknown(rule["expr"], known(RECORDED))


@pytest.mark.parametrize("rule", ALERTS, ids=NAMES)
def test_each_alert_says_how_grave_it_is_and_where_to_read_on(rule):
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    notes = rule["annotations"]
    assert set(notes) == {"summary", "description", "runbook", "dashboard"}
    assert notes["runbook"] == f"docs/runbooks/{rule['alert']}.md"
    assert notes["dashboard"].startswith("/")
    labels = set(re.findall(r"\$labels\.(\w+)", notes["summary"] + notes["description"]))
    grouped = {
        label.strip()
        for text in re.findall(r"\bby \(([^)]*)\)", rule["expr"])
        for label in text.split(",")
    }
    assert labels <= grouped


def test_every_alert_has_a_runbook_and_every_runbook_an_alert():
    pages = {path.stem for path in RUNBOOKS.glob("*.md")} - {"README"}
    assert pages == set(NAMES)
    assert len(NAMES) == len(set(NAMES))
    index = (RUNBOOKS / "README.md").read_text()
    assert re.findall(r"\]\((\w+)\.md\)", index) == NAMES


@pytest.mark.parametrize("rule", ALERTS, ids=NAMES)
def test_a_runbook_has_all_sections_and_tells_the_condition_as_it_is(rule):
    text = (RUNBOOKS / f"{rule['alert']}.md").read_text()
    sections = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    assert sections[1::2] == SECTIONS
    assert all(body.strip() for body in sections[2::2])
    assert f"Severity {rule['labels']['severity']}; fires when this held for {rule['for']}" in text
    assert f"`{rule['expr']}`" in text
