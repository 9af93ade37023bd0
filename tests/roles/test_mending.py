"""What a role waits for is told at /readyz and in one line, and mends itself; it never ends."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from hami_web.extender import issuing
from hami_web.simulator.faults import RequestMatch
from hami_web.simulator.server import SimulatedApiServer, write_kubeconfig
from tests.node_agent.lab import Lab, open_lab
from tests.roles.processes import Role, free_port, manage, needs, soon
from tests.sync.processes import Redis


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database as this version needs it, made by the command that the chart runs."""
    folder = tmp_path_factory.mktemp("prepared")
    with closing(manage(folder, {}, "prepare", "-v0")) as role:
        assert role.ended() == 0, role.lines
    return folder / "hami.sqlite3"


@pytest.fixture
def api() -> Iterator[SimulatedApiServer]:
    with SimulatedApiServer() as server:
        yield server


@pytest.mark.skipif(needs("redis-server"), reason="needs redis-server")
def test_a_worker_waits_for_its_volume_its_tables_and_its_queue(
    tmp_path: Path, api: SimulatedApiServer, prepared: Path
) -> None:
    data, redis = tmp_path / "data", Redis()
    data.write_text("a file where a folder should be")
    probe = f"127.0.0.1:{free_port()}"
    environment = {
        "HAMI_KUBECONFIG": str(write_kubeconfig(tmp_path / "kubeconfig", server=api.url)),
        "HAMI_DATA_DIR": str(data),
        "HAMI_BROKER_URL": redis.url.replace("//", "//:s3cret@"),
        "HAMI_METRICS_LISTEN": probe,
        "HAMI_RECONCILE_SECONDS": "1",
    }
    with closing(manage(tmp_path, environment, "worker")) as worker:
        worker.probe = f"http://{probe}"
        worker.until("VolumeNotWritable: ")
        assert worker.answers("/healthz") == (200, "ok\n")
        data.unlink()
        data.mkdir()
        worker.until("DatabaseSchemaOld: HAMI_DATABASE_URL: ")
        shutil.copy(prepared, data / "draft")
        (data / "draft").replace(data / "hami.sqlite3")
        worker.until("QueueUnavailable: HAMI_BROKER_URL: ")
        redis.start()
        try:
            worker.until("ok")
            soon(lambda: "ready." in "".join(worker.lines), lambda: str(worker.lines))
        finally:
            redis.stop()
        worker.until("QueueUnavailable: HAMI_BROKER_URL: ")
        data.rename(tmp_path / "elsewhere")
        worker.until("VolumeNotWritable: ")
        worker.process.send_signal(signal.SIGTERM)
        assert worker.ended() == 0
        assert worker.said("DatabaseSchemaOld") == 1
        assert worker.said("VolumeNotWritable") == 2
        text = "\n".join(worker.lines)
        assert "s3cret" not in text
        assert "Traceback" not in text, text


def test_the_web_waits_for_its_tables_and_the_api_server(tmp_path: Path, prepared: Path) -> None:
    port, listen = free_port(), f"127.0.0.1:{free_port()}"
    url = f"http://127.0.0.1:{port}"
    environment = {
        "HAMI_KUBECONFIG": str(write_kubeconfig(tmp_path / "kubeconfig", server=url)),
        "HAMI_DATA_DIR": str(tmp_path / "data"),
        "HAMI_WEB_LISTEN": listen,
    }
    data = tmp_path / "data"
    with closing(manage(tmp_path, environment, "web")) as web:
        web.probe = f"http://{listen}"
        web.until("DatabaseSchemaOld: HAMI_DATABASE_URL: ")
        assert web.answers("/healthz") == (200, "ok\n")
        shutil.copy(prepared, data / "draft")
        (data / "draft").replace(data / "hami.sqlite3")
        web.until("ApiServerUnavailable: GET /api/v1/")
        with SimulatedApiServer(port=port):
            web.until("ok")
            data.rename(tmp_path / "elsewhere")
            web.until("VolumeNotWritable: ")
            (tmp_path / "elsewhere").rename(data)
            web.until("ok")
        assert web.said("DatabaseSchemaOld") == 1
        assert web.said("VolumeNotWritable") == 1
        assert "Traceback" not in "\n".join(web.lines)


def test_an_extender_waits_for_rights_and_for_a_certificate_that_is_believed(
    tmp_path: Path, api: SimulatedApiServer
) -> None:
    now, listen = issuing.now(), f"127.0.0.1:{free_port()}"
    authority = issuing.make_authority(now)

    def issue(at: timedelta) -> None:
        pair = issuing.make_certificate(authority, ["localhost"], now - at)
        (tmp_path / "tls.key").write_bytes(pair.key)
        (tmp_path / "tls.crt").write_bytes(pair.certificate)

    issue(timedelta(days=900))
    api.faults.answer(403, RequestMatch(verb="list"), times=None)
    environment = {
        "HAMI_KUBECONFIG": str(write_kubeconfig(tmp_path / "kubeconfig", server=api.url)),
        "HAMI_EXTENDER_LISTEN": listen,
        "HAMI_EXTENDER_THREADS": "8",
        "HAMI_EXTENDER_TLS_CERT": str(tmp_path / "tls.crt"),
        "HAMI_EXTENDER_TLS_KEY": str(tmp_path / "tls.key"),
        "HAMI_LEADER_ELECTION": "false",
    }
    with closing(manage(tmp_path, environment, "extender")) as extender:
        extender.probe = f"https://{listen}"
        extender.until("CertificateUnusable: ")
        assert extender.answers("/healthz") == (200, "ok\n")
        issue(timedelta())
        extender.until("ApiServerForbids: GET /api")
        api.faults.clear()
        extender.until("ok")
        (tmp_path / "tls.key").write_text("half of a key")
        extender.until("ok")
        assert extender.said("CertificateUnusable") == 2
        assert "Traceback" not in "\n".join(extender.lines)


@pytest.fixture
def lab() -> Iterator[Lab]:
    with open_lab("a100-sxm4-40gb") as lab:
        yield lab


def test_an_agent_waits_for_its_folder_its_allowlist_its_rights_and_its_keys(
    tmp_path: Path, lab: Lab
) -> None:
    port, state, allowlist = free_port(), tmp_path / "state", tmp_path / "device-config.yaml"
    state.write_text("a file where a folder should be")
    good = Path(lab.environment["HAMI_DEVICE_CONFIG"]).read_text()
    allowlist.write_text("nvidia: [")
    lab.server.faults.answer(403, RequestMatch(verb="list"), times=None)
    environment = lab.environment | {
        "HAMI_STATE_DIR": str(state),
        "HAMI_DEVICE_CONFIG": str(allowlist),
        "HAMI_SIGNING_KEYS": str(tmp_path / "keys"),
        "HAMI_METRICS_PORT": str(port),
        "HAMI_DISCOVERY_SECONDS": "0.5",
    }
    with closing(Role(tmp_path, environment, "-m", "node_agent")) as agent:
        agent.probe = f"http://127.0.0.1:{port}"
        agent.until("VolumeNotWritable: the state folder")
        assert agent.answers("/healthz") == (200, "ok\n")
        state.unlink()
        agent.until("ApiServerForbids: the node's state cannot be read: ")
        lab.server.faults.clear()
        agent.until("PolicyInvalid: device configuration")
        allowlist.write_text(good)
        agent.until("SigningKeysUnusable: HAMI_SIGNING_KEYS: ")
        (tmp_path / "keys").write_text(f"k {'A' * 43}=\n")
        agent.until("ok")
        agent.process.send_signal(signal.SIGTERM)
        assert agent.ended() == 0
        text = "\n".join(agent.lines)
        assert "Traceback" not in text, text
        assert text.count("VolumeNotWritable") == 1, text
        assert text.count("PolicyInvalid") == 2, text  # of the file, and of the GPUs
        assert text.count("SigningKeysUnusable") == 1, text
