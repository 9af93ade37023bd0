"""Settings from the environment; the only module of the agent that reads it."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hami_web.core import tracing
from hami_web.core.liveness import AGENT_LEASE_NAMESPACE
from node_agent.errors import InvalidSetting

_NODE_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_RESOURCE: Final = re.compile(
    r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
)
_LEVELS: Final = ("debug", "info", "warning", "error")
_FORMATS: Final = ("json", "text")
_GPU: Final = re.compile(r"[0-9]{1,3}|GPU-[0-9A-Za-z-]+")
DELIVERIES: Final = ("envvar", "cdi", "device-specs")
"""How a container gets its instances: by environment, by CDI names, or as device nodes."""
_SWITCH: Final = {"true": True, "false": False}
_ABSOLUTE: Final = "an absolute path"
_SECONDS: Final = "seconds in 0.05…3600"
_PORT: Final = "a port in 0…65535, 0 for none"


@dataclass(frozen=True, slots=True)
class AgentSetting:
    """A variable as the code reads it; ``default`` and ``allowed`` are texts for people."""

    name: str
    default: str
    allowed: str


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """All settings, checked. Times are in seconds.

    ``kubeconfig`` None means the Pod's service account; ``simulated_nvml`` is the state folder of
    a simulated node, None for the real library; without ``signing_keys`` no signature is looked
    at; ``metrics_port`` 0 means no HTTP server. ``delivery`` is one of :data:`DELIVERIES`;
    ``driver_root`` is the folder that holds the host's ``proc`` and ``dev``; ``cdi_base_spec`` is
    a CDI file whose container edits (driver libraries) every one of ours repeats.
    """

    node_name: str
    device_config: Path
    namespace: str
    kubeconfig: Path | None
    device_plugin_dir: Path
    resource_name: str
    state_dir: Path
    sysfs: Path
    simulated_nvml: Path | None
    signing_keys: Path | None
    accept_unsigned: bool
    discovery_seconds: float
    reclaim_seconds: float
    allocate_seconds: float
    api_seconds: float
    clean_idle_gpus: bool
    excluded_gpus: frozenset[str]
    delivery: str
    driver_root: Path
    host_driver_root: Path
    make_device_nodes: bool
    cdi_dir: Path
    cdi_base_spec: Path | None
    metrics_address: str
    metrics_port: int
    log_level: int
    log_format: str
    traces_endpoint: str

    @classmethod
    def settings(cls) -> tuple[AgentSetting, ...]:
        """Every variable with its default and what is allowed, in the order of reading."""
        env = _Environment({"NODE_NAME": "node"})
        cls._read(env)
        return tuple(env.settings.values())

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> AgentConfig:
        """Read and check every setting. Raises :class:`InvalidSetting`."""
        return cls._read(_Environment(os.environ if environ is None else environ))

    @classmethod
    def _read(cls, env: _Environment) -> AgentConfig:
        simulated = env.optional_path("HAMI_SIMULATED_NVML")
        return cls(
            node_name=env.matching("NODE_NAME", _NODE_NAME, "the Kubernetes name of this node"),
            namespace=env.matching(
                "HAMI_NAMESPACE", _NAMESPACE, "a Kubernetes namespace", AGENT_LEASE_NAMESPACE
            ),
            device_config=env.path("HAMI_DEVICE_CONFIG", "/etc/hami/device-config.yaml"),
            kubeconfig=env.optional_path("HAMI_KUBECONFIG"),
            device_plugin_dir=env.path("HAMI_DEVICE_PLUGIN_DIR", "/var/lib/kubelet/device-plugins"),
            resource_name=env.matching(
                "HAMI_RESOURCE_NAME", _RESOURCE, "a name such as nvidia.com/gpu", "nvidia.com/gpu"
            ),
            state_dir=env.path("HAMI_STATE_DIR", "/var/lib/hami/node-agent"),
            sysfs=env.path("HAMI_SYSFS", "/sys"),
            simulated_nvml=simulated,
            signing_keys=env.optional_path("HAMI_SIGNING_KEYS"),
            accept_unsigned=_SWITCH[env.choice("HAMI_ACCEPT_UNSIGNED", tuple(_SWITCH), "false")],
            discovery_seconds=env.seconds("HAMI_DISCOVERY_SECONDS", "30"),
            reclaim_seconds=env.seconds("HAMI_RECLAIM_SECONDS", "15"),
            allocate_seconds=env.seconds("HAMI_ALLOCATE_SECONDS", "20"),
            api_seconds=env.seconds("HAMI_API_SECONDS", "5"),
            clean_idle_gpus=_SWITCH[env.choice("HAMI_CLEAN_IDLE_GPUS", tuple(_SWITCH), "true")],
            excluded_gpus=env.words(
                "HAMI_EXCLUDED_GPUS", _GPU, "GPU UUIDs or indexes, separated by commas"
            ),
            delivery=env.choice("HAMI_DEVICE_LIST_STRATEGY", DELIVERIES, "envvar"),
            driver_root=env.path("HAMI_DRIVER_ROOT", f"{simulated}/root" if simulated else "/"),
            host_driver_root=env.path(
                "HAMI_HOST_DRIVER_ROOT", f"{simulated}/root" if simulated else "/"
            ),
            make_device_nodes=_SWITCH[env.choice("HAMI_MAKE_DEVICE_NODES", tuple(_SWITCH), "true")],
            cdi_dir=env.path("HAMI_CDI_DIR", "/var/run/cdi"),
            cdi_base_spec=env.optional_path("HAMI_CDI_BASE_SPEC"),
            metrics_address=env.text("HAMI_METRICS_ADDRESS", "127.0.0.1"),
            metrics_port=env.port("HAMI_METRICS_PORT", "0"),
            log_level=logging.getLevelNamesMapping()[
                env.choice("HAMI_LOG_LEVEL", _LEVELS, "info").upper()
            ],
            log_format=env.choice("HAMI_LOG_FORMAT", _FORMATS, "json"),
            traces_endpoint=env.endpoint("OTEL_EXPORTER_OTLP_ENDPOINT"),
        )


class _Environment:
    """Typed reading of variables; an empty one counts as absent."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.settings: dict[str, AgentSetting] = {}

    def text(self, name: str, default: str, allowed: str = "text") -> str:
        self.settings[name] = AgentSetting(name, default, allowed)
        return self._environ.get(name, "").strip() or default

    def endpoint(self, name: str) -> str:
        value = self.text(name, "", tracing.ENDPOINT)
        if value and not tracing.is_endpoint(value):
            raise InvalidSetting(name, value, tracing.ENDPOINT)
        return value

    def matching(self, name: str, pattern: re.Pattern[str], allowed: str, default: str = "") -> str:
        value = self.text(name, default, allowed)
        if not pattern.fullmatch(value):
            raise InvalidSetting(name, value, allowed)
        return value

    def choice(self, name: str, allowed: tuple[str, ...], default: str) -> str:
        value = self.text(name, default, ", ".join(allowed)).lower()
        if value not in allowed:
            raise InvalidSetting(name, value, ", ".join(allowed))
        return value

    def path(self, name: str, default: str) -> Path:
        value = Path(self.text(name, default, _ABSOLUTE))
        if not value.is_absolute():
            raise InvalidSetting(name, str(value), _ABSOLUTE)
        return value

    def optional_path(self, name: str) -> Path | None:
        return self.path(name, "") if self.text(name, "", _ABSOLUTE) else None

    def words(self, name: str, pattern: re.Pattern[str], allowed: str) -> frozenset[str]:
        given = self.text(name, "", allowed)
        found = frozenset(word.strip() for word in given.split(",") if word.strip())
        for word in sorted(found):
            if not pattern.fullmatch(word):
                raise InvalidSetting(name, word, allowed)
        return found

    def seconds(self, name: str, default: str) -> float:
        value = self.text(name, default, _SECONDS)
        try:
            number = float(value)
        except ValueError:
            number = 0.0
        if not 0.05 <= number <= 3600:
            raise InvalidSetting(name, value, _SECONDS)
        return number

    def port(self, name: str, default: str) -> int:
        value = self.text(name, default, _PORT)
        if not (value.isascii() and value.isdigit()) or int(value) > 65535:
            raise InvalidSetting(name, value, _PORT)
        return int(value)
