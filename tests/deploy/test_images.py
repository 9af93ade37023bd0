"""Each image's file tree, made as its Dockerfile does, runs its programs without the project."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import distribution
from pathlib import Path
from urllib.error import HTTPError

import cyclonedx.schema
import jsonschema_rs
import pytest

from hami_web.simulator.server import SimulatedApiServer, write_kubeconfig
from node_agent.nvml.simulated.lookups import GpuSpec
from node_agent.nvml.simulated.node import SimulatedNode
from tests.architecture.licences import shipped
from tests.cluster.processes import free_port
from tests.deploy.chart import ROOT

IMAGES = ROOT / "deploy" / "images"
ROLES = ("control-plane", "node-agent")
TOOLS = Path(sys.executable).parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder)]
    done = subprocess.run([*command, str(ROOT)], check=False, capture_output=True, text=True)
    if done.returncode != 0 and "hatchling" in done.stderr:
        pytest.skip(f"needs hatchling to build a wheel: {done.stderr[-200:]}")
    assert done.returncode == 0, done.stderr
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def trees(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Both trees; what they depend on is this environment's, behind what they hold themselves."""
    if not (TOOLS / "cyclonedx-py").exists():
        pytest.skip("needs cyclonedx-bom")
    found = {}
    empty = tmp_path_factory.mktemp("locks") / "empty.txt"
    empty.touch()
    for role in ROLES:
        prefix = tmp_path_factory.mktemp("images") / role
        environ = os.environ | {"TOOLS": str(TOOLS), "LOCK": str(empty)}
        command = [IMAGES / "assemble", role, prefix, wheel]
        subprocess.run(command, check=True, env=environ, timeout=120)
        (packages,) = prefix.glob("lib/python3*/site-packages")
        (packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
        found[role] = prefix
    return found


@contextmanager
def running(program: list[str | Path], environ: Mapping[str, str], folder: Path) -> Iterator[Path]:
    """A program in an empty folder, ended by SIGTERM; its output is at the path."""
    log = folder / "log"
    clean = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            program, env=clean | environ, cwd=folder, stdout=output, stderr=output
        )
    try:
        yield log
        assert process.poll() is None, log.read_text()
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def answered(url: str, log: Path, seconds: float = 40) -> tuple[int, str]:
    """Status and text as soon as somebody answers."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[dict[str, str]]:
    with SimulatedApiServer() as server:
        path = write_kubeconfig(tmp_path / "kubeconfig", server=server.url)
        yield {"HAMI_KUBECONFIG": str(path), "HAMI_DATA_DIR": str(tmp_path / "data")}


@pytest.mark.slow
def test_the_dashboard_has_its_pages_and_styles_where_it_is_installed(
    trees: dict[str, Path], cluster: dict[str, str], tmp_path: Path
) -> None:
    program = trees["control-plane"] / "bin" / "hami-web"
    port = free_port()
    environ = cluster | {"HAMI_WEB_LISTEN": f"127.0.0.1:{port}"}
    clean = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    subprocess.run(
        [program, "prepare", "--admin", "boss", "--verbosity", "0"],
        check=True,
        env=clean | environ | {"HAMI_ADMIN_PASSWORD": "wood-lamp-river-41"},
        cwd=tmp_path,
        timeout=60,
    )
    with running([program, "web"], environ, tmp_path) as log:
        status, page = answered(f"http://127.0.0.1:{port}/login", log)
        assert status == 200
        style = re.search(r'href="(/static/[^"]+\.css[^"]*)"', page)
        assert style is not None, page
        assert answered(f"http://127.0.0.1:{port}{style[1]}", log)[0] == 200
        chinese = urllib.request.Request(
            f"http://127.0.0.1:{port}/login", headers={"Accept-Language": "zh-hans"}
        )
        with urllib.request.urlopen(chinese, timeout=10) as answer:
            assert re.search("[\u4e00-\u9fff]", answer.read().decode())


@pytest.mark.slow
def test_the_extender_runs_where_it_is_installed(
    trees: dict[str, Path], cluster: dict[str, str], tmp_path: Path
) -> None:
    port = free_port()
    environ = cluster | {"HAMI_EXTENDER_LISTEN": f"127.0.0.1:{port}", "HAMI_POD_NAME": "x"}
    with running(
        [trees["control-plane"] / "bin" / "hami-web", "extender"], environ, tmp_path
    ) as log:
        assert answered(f"http://127.0.0.1:{port}/healthz", log) == (200, "ok\n")


@pytest.mark.slow
def test_the_worker_runs_where_it_is_installed(
    trees: dict[str, Path], cluster: dict[str, str], tmp_path: Path
) -> None:
    port = free_port()
    environ = cluster | {"HAMI_METRICS_LISTEN": f"127.0.0.1:{port}"}
    program = [trees["control-plane"] / "bin" / "hami-web", "worker", "--migrate"]
    with running(program, environ, tmp_path) as log:
        status, text = answered(f"http://127.0.0.1:{port}/metrics", log)
        assert status == 200
        assert "hami_" in text


@pytest.mark.slow
def test_the_agent_runs_where_it_is_installed(
    trees: dict[str, Path], cluster: dict[str, str], tmp_path: Path
) -> None:
    SimulatedNode(tmp_path / "nvml").create([GpuSpec("a100-sxm4-40gb")])
    port = free_port()
    (tmp_path / "plugins").mkdir()
    environ = {
        "HAMI_KUBECONFIG": cluster["HAMI_KUBECONFIG"],
        "NODE_NAME": "n1",
        "HAMI_DEVICE_CONFIG": str(ROOT / "deploy" / "device-config.yaml"),
        "HAMI_STATE_DIR": str(tmp_path / "state"),
        "HAMI_DEVICE_PLUGIN_DIR": str(tmp_path / "plugins"),
        "HAMI_SIMULATED_NVML": str(tmp_path / "nvml"),
        "HAMI_METRICS_PORT": str(port),
    }
    with running([trees["node-agent"] / "bin" / "hami-node-agent"], environ, tmp_path) as log:
        assert answered(f"http://127.0.0.1:{port}/healthz", log) == (200, "ok\n")


def test_an_image_holds_its_own_programs_and_no_installer(trees: dict[str, Path]) -> None:
    programs = {role: {p.name for p in (tree / "bin").iterdir()} for role, tree in trees.items()}
    assert "hami-web" in programs["control-plane"]
    assert "hami-node-agent" not in programs["control-plane"]
    assert "hami-node-agent" in programs["node-agent"]
    assert "hami-web" not in programs["node-agent"]
    assert not any(name.startswith("pip") for found in programs.values() for name in found)


def test_the_list_of_contents_names_the_product(trees: dict[str, Path]) -> None:
    for tree in trees.values():
        document = json.loads((tree / "sbom.json").read_text())
        assert document["bomFormat"] == "CycloneDX"
        assert "hami-web" in {part["name"] for part in document["components"]}


def cyclonedx_schema(version: str) -> jsonschema_rs.Validator:
    """The published schema of a version of CycloneDX, with those that it refers to."""
    folder = Path(str(cyclonedx.schema.__file__)).parent / "_res"
    schemas = {path.name: json.loads(path.read_text()) for path in folder.glob("*.schema.json")}
    named = [(f"http://cyclonedx.org/schema/{name}", schema) for name, schema in schemas.items()]
    wanted = schemas[f"bom-{version}.SNAPSHOT.schema.json"]
    return jsonschema_rs.validator_for(wanted, registry=jsonschema_rs.Registry(named))


@pytest.mark.parametrize("role", ROLES)
def test_the_list_of_contents_names_each_distribution_of_the_lock(
    role: str, tmp_path: Path
) -> None:
    # What is installed is known by its metadata alone; this environment has that of each release.
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "tree"], check=True)
    (packages,) = tmp_path.glob("tree/lib/python3*/site-packages")
    for name in shipped(role):
        folder = Path(str(distribution(name)._path))  # type: ignore[attr-defined]
        (packages / folder.name).symlink_to(folder)
    sbom = tmp_path / "sbom.json"
    listing = [TOOLS / "cyclonedx-py", "environment", "--no-validate", "--output-file", sbom]
    tree = tmp_path / "tree" / "bin" / "python"
    subprocess.run([*listing, tree], check=True, capture_output=True)
    compare = [sys.executable, IMAGES / "contents", sbom, IMAGES / "locks" / f"{role}.txt"]
    subprocess.run(compare, check=True)
    document = json.loads(sbom.read_text())
    cyclonedx_schema(document["specVersion"]).validate(document)
    dropped = document["components"].pop()["name"]
    document["components"].append({"type": "library", "name": "stranger", "version": "1"})
    sbom.write_text(json.dumps(document))
    done = subprocess.run(compare, check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert f"{dropped} is missing" in done.stderr
    assert "stranger 1" in done.stderr


def test_assemble_says_what_is_allowed(tmp_path: Path) -> None:
    done = subprocess.run(
        [IMAGES / "assemble", "agent", tmp_path, "x.whl"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "allowed: control-plane, node-agent" in done.stderr


@pytest.mark.parametrize("role", ROLES)
def test_a_dockerfile_copies_what_exists_and_assembles_as_the_tests_do(role: str) -> None:
    text = (IMAGES / f"{role}.Dockerfile").read_text()
    build, final = text.split("\nFROM ${PYTHON}\n")
    for sources in re.findall(r"^COPY (.+) \S+$", build, re.MULTILINE):
        for source in sources.split():
            assert (ROOT / source).exists(), source
    assert f"deploy/images/assemble {role} /opt/hami /wheels/*.whl" in build
    assert re.findall(r"^COPY (.+)$", final, re.MULTILINE) == ["--from=build /opt/hami /opt/hami"]
    assert "RUN" not in final
    assert re.findall(r"^USER (.+)$", final, re.MULTILINE) == [
        "65532:65532" if role == "control-plane" else "0:0"
    ]
    assert "*@sha256:*)" in build
