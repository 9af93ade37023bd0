"""Grafana dashboards as code: ``make manifests`` writes their JSON, in English and Chinese."""

from __future__ import annotations

from tests.deploy.dashboards.cluster import CLUSTER
from tests.deploy.dashboards.instances import INSTANCES
from tests.deploy.dashboards.nodes import NODES

DASHBOARDS = (CLUSTER, NODES, INSTANCES)
