"""What Prometheus's operator is told: every role is scraped once, and the rules are the files."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.deploy.chart import CHART, containers, of_kind
from tests.deploy.test_chart import variant

pytestmark = pytest.mark.usefixtures("helm")

ROLES = {
    "replicas": {"extender", "web", "worker", "node-agent"},
    "device nodes": {"extender", "web", "node-agent"},
}
ENDPOINTS = {
    "replicas": {"metrics", "web-metrics", "worker-metrics"},
    "device nodes": {"metrics", "web-metrics", "worker-metrics"},
}


def chosen(labels: dict[str, str], found: dict[str, Any]) -> list[Any]:
    return [item for item in found.values() if labels.items() <= item["metadata"]["labels"].items()]


@pytest.mark.parametrize("name", ROLES)
def test_every_role_is_scraped_by_one_monitor_at_ports_that_it_has(name: str) -> None:
    found, ports = variant(name), set()
    for monitor in of_kind(found, "ServiceMonitor").values():
        labels = monitor["spec"]["selector"]["matchLabels"]
        (service,) = chosen(labels, of_kind(found, "Service"))
        offered = {port["name"]: port for port in service["spec"]["ports"]}
        for endpoint in monitor["spec"]["endpoints"]:
            assert endpoint["port"] in offered
            assert endpoint["honorLabels"] is True
            ports.add(endpoint["port"])
    (agents,) = of_kind(found, "PodMonitor").values()
    labels = agents["spec"]["selector"]["matchLabels"]
    (daemon_set,) = of_kind(found, "DaemonSet").values()
    assert labels.items() <= daemon_set["spec"]["template"]["metadata"]["labels"].items()
    (endpoint,) = agents["spec"]["podMetricsEndpoints"]
    agent = containers(found)["DaemonSet/hami-node-agent/node-agent"]
    assert endpoint["port"] in {port["name"] for port in agent["ports"]}
    monitors = [*of_kind(found, "ServiceMonitor").values(), agents]
    roles = [m["metadata"]["labels"]["app.kubernetes.io/component"] for m in monitors]
    assert set(roles) == ROLES[name]
    assert len(roles) == len(set(roles))
    assert ports == ENDPOINTS[name]
    assert {m["metadata"]["labels"]["release"] for m in monitors} == {"prometheus"}


def test_the_extender_is_trusted_by_its_own_authority_and_name() -> None:
    monitor = of_kind(variant("replicas"), "ServiceMonitor")["hami-extender"]
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["scheme"] == "https"
    assert endpoint["tlsConfig"] == {
        "serverName": "hami-extender.hami-system.svc",
        "ca": {"secret": {"name": "hami-extender-tls", "key": "ca.crt"}},
    }


def test_the_rules_are_those_of_the_files_word_for_word() -> None:
    found = of_kind(variant("replicas"), "PrometheusRule")
    files = {
        f"hami-{path.stem}": yaml.safe_load(path.read_text())
        for path in (CHART / "files" / "rules").glob("*.yaml")
    }
    assert {name: rule["spec"] for name, rule in found.items()} == files
    assert set(files) == {"hami-alerts", "hami-recording"}


def test_grafana_gets_the_files_as_they_are_in_one_language() -> None:
    found = of_kind(variant("replicas"), "ConfigMap")
    boards = {name: board for name, board in found.items() if name.endswith("-dashboard")}
    files = sorted((CHART / "files" / "grafana" / "en").glob("*.json"))
    assert [f"{path.stem}-dashboard" for path in files] == sorted(boards)
    for path in files:
        board = boards[f"{path.stem}-dashboard"]
        assert board["data"] == {path.name: path.read_text()}
        assert board["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert board["metadata"]["annotations"] == {"grafana_folder": "GPUs"}


def test_nothing_of_an_operator_is_installed_unasked() -> None:
    found = variant("default")
    assert not [d for d in found if d["apiVersion"].startswith("monitoring.")]
    assert not [name for name in of_kind(found, "ConfigMap") if name.endswith("-dashboard")]


def test_every_role_sends_its_spans_where_it_is_told_and_else_nowhere() -> None:
    def told(name: str) -> set[str]:
        return {
            where
            for where, container in containers(variant(name)).items()
            for v in container.get("env", [])
            if v["name"] == "OTEL_EXPORTER_OTLP_ENDPOINT"
        }

    assert told("default") == set()
    assert {where.rpartition("/")[2] for where in told("replicas")} == {
        *("extender", "web", "worker", "prepare", "setup", "node-agent"),
    }


@pytest.mark.parametrize("name", ["default", "postgres"])
def test_every_role_is_told_how_to_write_its_lines(name: str) -> None:
    for where, container in containers(variant(name)).items():
        if where.startswith("Pod/") or where.endswith("/kube-scheduler"):
            continue
        given = {v["name"]: v.get("value") for v in container["env"]}
        assert given["HAMI_LOG_FORMAT"] == "json", where
        assert given["HAMI_LOG_LEVEL"].upper() == "INFO", where
