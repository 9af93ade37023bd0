"""Puts the agent together and keeps it up: whatever is missing, it says so and offers nothing."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from contextlib import ExitStack
from typing import Final

from hami_web.core.faults import Fault, line
from hami_web.core.log_lines import JsonFormatter, TextFormatter
from hami_web.core.tracing import export_to
from node_agent.cluster import connect
from node_agent.condition import NodeCondition
from node_agent.config import AgentConfig
from node_agent.deviceplugin.registration import KubeletRegistration
from node_agent.deviceplugin.server import DevicePluginService
from node_agent.errors import AgentError
from node_agent.hardware import open_driver, use_library
from node_agent.health import HealthServer
from node_agent.inventory import Inventory
from node_agent.lease import AgentLease
from node_agent.locks import try_lock
from node_agent.metrics import AgentMetrics
from node_agent.nvml.ports import DriverError
from node_agent.podevents import PodEvents
from node_agent.policy import DevicePolicy
from node_agent.publisher import Publisher
from node_agent.session import Parts, Session
from node_agent.survey import Survey
from node_agent.trust import Trust

logger = logging.getLogger(__name__)

_RETRY_FIRST_SECONDS: Final = 0.5
_RETRY_MOST_SECONDS: Final = 30.0
_STARTING: Final = "starting"
_STOP_SIGNALS: Final = frozenset({signal.SIGTERM, signal.SIGINT})


class Agent:
    """One agent process. :meth:`run` returns after :meth:`stop`."""

    def __init__(self, config: AgentConfig) -> None:
        """Raises :class:`AgentError` when there is no way to reach Kubernetes at all."""
        self._config = config
        self._stop = threading.Event()
        self._problem = _STARTING
        self._session: Session | None = None
        self.metrics = AgentMetrics()
        self._inventory = Inventory()
        self._trust = Trust(config.signing_keys, accept_unsigned=config.accept_unsigned)
        cluster = connect(config.node_name, config.kubeconfig, config.api_seconds)
        policy = DevicePolicy(config.device_config)
        self._service = DevicePluginService(self._inventory, self.metrics, config.allocate_seconds)
        self._registration = KubeletRegistration(
            self._service, config.device_plugin_dir, config.resource_name, self.metrics
        )
        self._lease = AgentLease(
            cluster, config.node_name, config.namespace, self.metrics, self.serving
        )
        self._service.watch(self._lease.wake)
        survey = Survey(policy, config.sysfs, config.excluded_gpus)
        condition = NodeCondition(cluster, config.node_name)
        self._events = PodEvents(cluster, config.node_name, self.metrics)
        publisher = Publisher(
            cluster, self._inventory, survey, condition, self.metrics, self._events
        )
        self._parts = Parts(
            config,
            cluster,
            self._service,
            survey,
            publisher,
            self._events,
            self.metrics,
            self._trust,
        )

    def stop(self) -> None:
        """Stop cleanly: Allocate calls in progress end, instances stay. Safe from any thread."""
        self._stop.set()
        self._lease.wake()
        session = self._session
        if session is not None:
            session.wake()

    def serving(self) -> bool:
        """True while the kubelet follows the offer and Allocate is served."""
        if self._trust.is_strict and self._trust.problem():
            return False  # what would be bound here would fail
        known = self._registration.registered.is_set() and self._service.followed
        return known and self._service.serving and not self._stop.is_set()

    def problem(self) -> str:
        """Why the agent is not ready, or an empty text."""
        if self._problem:
            return self._problem
        if not self._registration.registered.is_set():
            return "not registered with the kubelet"
        if not self._service.followed:
            return "registered, and the kubelet does not follow the offered devices"
        return self._trust.problem()

    def run(self) -> None:
        """Register at once, and work whenever NVML and the API server let it."""
        registration = threading.Thread(
            target=self._registration.run, args=(self._stop,), name="registration"
        )
        lease = threading.Thread(target=self._lease.run, args=(self._stop,), name="lease")
        events = threading.Thread(target=self._events.run, name="pod-events")
        with ExitStack() as closing:
            self._serve_health(closing)
            closing.callback(self._parts.cluster.close)
            registration.start()
            closing.callback(self._service.close)
            closing.callback(registration.join)
            closing.callback(self._stop.set)
            if self._own_node(closing):
                # Only the owner of the node speaks for it: a second process would close it.
                events.start()
                closing.callback(events.join)
                closing.callback(self._events.end)
                closing.callback(self._parts.publisher.stopped)
                lease.start()
                closing.callback(lease.join)
                closing.callback(self._stop.set)
                self._work()
        logger.info("stopped; instances stay as they are")

    def _serve_health(self, closing: ExitStack) -> None:
        """Serve health and metrics; a port that is taken costs those, never the agent's work."""
        config = self._config
        if not config.metrics_port:
            return
        try:
            health = HealthServer(
                config.metrics_address, config.metrics_port, self.metrics, self.problem
            )
        except OSError as error:
            logger.error(  # noqa: TRY400, one line for people, no traceback
                "no metrics: cannot listen on %s:%d: %s",
                config.metrics_address,
                config.metrics_port,
                error,
            )
            return
        health.start()
        closing.callback(health.close)

    def _own_node(self, closing: ExitStack) -> bool:
        """Wait until no other agent process works on this state folder."""
        path = self._config.state_dir / "agent.lock"
        while not self._stop.is_set():
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError as error:
                self._report(line(Fault.VOLUME, f"the state folder cannot be used: {error}"))
            else:
                if try_lock(descriptor):
                    closing.callback(os.close, descriptor)
                    return True
                os.close(descriptor)
                self._report(f"another agent process works with {path.parent}")
            self._stop.wait(_RETRY_FIRST_SECONDS)
        return False

    def _work(self) -> None:
        """One NVML session after another; between them nothing is offered."""
        wait = _RETRY_FIRST_SECONDS
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                self._one_session()
            except DriverError as error:
                self._report(f"NVML cannot be used: {error}")
                self._parts.publisher.withdraw(f"NVML cannot be used: {error}", "NoDriver")
            except (AgentError, OSError) as error:
                self._report(str(error))
            except Exception:
                self._problem = "an unexpected error, see the log"
                logger.exception("the work begins anew after an unexpected error")
            if time.monotonic() - began > _RETRY_MOST_SECONDS:
                wait = _RETRY_FIRST_SECONDS
            if self._stop.wait(wait):
                return
            wait = min(wait * 2, _RETRY_MOST_SECONDS)

    def _one_session(self) -> None:
        driver = open_driver()
        try:
            session = Session(self._parts, driver)
            self._session = session
            session.run(self._stop, self._ready)
        finally:
            self._session = None
            driver.close()

    def _ready(self, problem: str) -> None:
        self._problem = problem

    def _report(self, problem: str) -> None:
        if problem != self._problem:
            logger.error("no device is offered: %s", problem)
        self._problem = problem


def configure_logging(config: AgentConfig) -> None:
    """Log to standard error, as text for people or as JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    if config.log_format == "json":
        handler.setFormatter(JsonFormatter("node-agent", node=config.node_name))
    else:
        handler.setFormatter(TextFormatter("%(asctime)s %(levelname)-7s %(message)s"))
    logging.basicConfig(level=config.log_level, handlers=[handler], force=True)
    # Each call that fails is told by who made it.
    logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)


def main() -> int:
    """Run until SIGTERM or SIGINT. Returns the exit status: 2 for settings that cannot be used."""
    try:
        config = AgentConfig.from_env()
    except AgentError as error:
        sys.stderr.write(f"node-agent: {line(Fault.SETTING, error)}\n")
        return 2
    configure_logging(config)
    export_to(config.traces_endpoint, "node-agent", **{"k8s.node.name": config.node_name})
    use_library(config.simulated_nvml)
    # Blocked here and waited for below: a handler could not take the locks that stopping takes.
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
    try:
        agent = Agent(config)
    except AgentError as error:
        logger.error(  # noqa: TRY400, one line for people, no traceback
            "%s", line(Fault.KUBERNETES_CONFIG, error)
        )
        return 2
    failed = threading.Event()
    worker = threading.Thread(target=_run, args=(agent, failed), name="agent")
    worker.start()
    signal.sigwait(_STOP_SIGNALS)
    agent.stop()
    worker.join()
    return 1 if failed.is_set() else 0


def _run(agent: Agent, failed: threading.Event) -> None:
    """Run the agent; should it ever end by itself, end the process, which is then restarted."""
    try:
        agent.run()
    except Exception:
        failed.set()
        logger.exception("the agent failed")
        os.kill(os.getpid(), signal.SIGTERM)
