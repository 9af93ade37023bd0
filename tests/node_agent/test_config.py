"""Settings: each is checked, and each error names variable, value and what is allowed."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from node_agent.config import AgentConfig
from node_agent.errors import InvalidSetting


def test_a_node_name_is_all_that_must_be_set() -> None:
    config = AgentConfig.from_env({"NODE_NAME": "gpu-n1"})
    assert config.device_plugin_dir == Path("/var/lib/kubelet/device-plugins")
    assert config.resource_name == "nvidia.com/gpu"
    assert config.kubeconfig is None
    assert config.simulated_nvml is None
    assert config.clean_idle_gpus
    assert config.metrics_port == 0
    assert config.log_level == logging.INFO


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("NODE_NAME", "", "the Kubernetes name of this node"),
        ("NODE_NAME", "a/b", "the Kubernetes name of this node"),
        ("HAMI_RESOURCE_NAME", "gpu", "a name such as nvidia.com/gpu"),
        ("HAMI_STATE_DIR", "state", "an absolute path"),
        ("HAMI_KUBECONFIG", "config", "an absolute path"),
        ("HAMI_DISCOVERY_SECONDS", "soon", "seconds in 0.05…3600"),
        ("HAMI_RECLAIM_SECONDS", "0", "seconds in 0.05…3600"),
        ("HAMI_ALLOCATE_SECONDS", "nan", "seconds in 0.05…3600"),
        ("HAMI_API_SECONDS", "-1", "seconds in 0.05…3600"),
        ("HAMI_CLEAN_IDLE_GPUS", "maybe", "true, false"),
        ("HAMI_ACCEPT_UNSIGNED", "1", "true, false"),
        ("HAMI_SIGNING_KEYS", "keys", "an absolute path"),
        ("HAMI_METRICS_PORT", "70000", "a port in 0…65535"),
        ("HAMI_LOG_LEVEL", "loud", "debug, info, warning, error"),
        ("HAMI_LOG_FORMAT", "xml", "json, text"),
    ],
)
def test_a_bad_setting_is_refused(name: str, value: str, allowed: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        AgentConfig.from_env({"NODE_NAME": "gpu-n1"} | {name: value})
    text = str(caught.value)
    assert name in text
    assert repr(value) in text
    assert allowed in text


def test_the_command_says_in_one_line_what_is_wrong() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "node_agent"],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("node-agent: SettingInvalid: NODE_NAME: '' is not allowed")
    assert done.stderr.count("\n") == 1


def test_without_access_to_kubernetes_the_command_says_so() -> None:
    environment = {"PATH": os.environ["PATH"], "NODE_NAME": "gpu-n1", "HAMI_KUBECONFIG": "/nowhere"}
    done = subprocess.run(
        [sys.executable, "-m", "node_agent"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 2
    assert "no access to Kubernetes by kubeconfig /nowhere" in done.stderr
