"""What CI tests, what images ship and what the documents say of it are the same."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.architecture import licences

ROOT = Path(__file__).parents[2]
TESTED = ROOT / ".ci" / "locks" / "development.txt"
LOCKS = {path.stem: path for path in (ROOT / "deploy" / "images" / "locks").glob("*.txt")}
LOCKS |= {path.stem: path for path in (ROOT / ".ci" / "locks").glob("*.txt")}
EXTRAS = {
    "development": ("development",),
    "agent": ("node-agent", "agent-test"),
    "control-plane": ("control-plane", "oidc"),
    "node-agent": ("node-agent",),
    "build": ("image-build",),
}


def rows(path: Path) -> dict[str, Requirement]:
    found = re.findall(r"(?m)^([^\s#][^\\\n]*)", path.read_text("utf-8"))
    return {canonicalize_name(row.name): row for row in map(Requirement, found)}


def asked(*extras: str) -> Iterator[Requirement]:
    """What pyproject.toml asks for, extras of its own resolved."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for extra in extras:
        for row in map(Requirement, project["optional-dependencies"][extra]):
            if row.name == project["name"]:
                yield from asked(*row.extras)
            else:
                yield row


def test_every_extra_that_is_installed_has_a_lock() -> None:
    assert LOCKS.keys() == EXTRAS.keys()


@pytest.mark.parametrize("name", EXTRAS)
def test_a_lock_holds_what_the_project_asks_for(name: str) -> None:
    locked = rows(LOCKS[name])
    for row in asked(*EXTRAS[name]):
        version = str(locked[canonicalize_name(row.name)].specifier).removeprefix("==")
        assert row.specifier.contains(version), f"{row}: {version} is locked; make lock"


@pytest.mark.parametrize("name", EXTRAS)
def test_a_lock_names_exact_releases_with_hashes_and_no_place(name: str) -> None:
    text = LOCKS[name].read_text("utf-8")
    for block in re.split(r"(?m)^(?=[^\s#])", text)[1:]:
        assert re.match(r"[a-z0-9.-]+(\[[a-z,-]+\])?==\S+", block), block
        assert "--hash=sha256:" in block
    assert "://" not in text
    assert not re.search(r"(?m)^\s*--(?!hash)", text)


@pytest.mark.parametrize("name", sorted(EXTRAS.keys() - {"development"}))
def test_what_is_shipped_is_what_was_tested(name: str) -> None:
    tested = rows(TESTED)
    for row in rows(LOCKS[name]).values():
        assert row.specifier == tested[canonicalize_name(row.name)].specifier


def test_the_lists_of_licences_are_those_of_the_locks_and_files() -> None:
    assert licences.stale() == []


def test_every_licence_that_asks_for_more_is_in_the_notice() -> None:
    notice = (ROOT / "NOTICE").read_text("utf-8")
    for row in licences.distributions():
        name, _, licence = (cell.strip(" `") for cell in row.split("|")[1:4])
        permissive = re.fullmatch(
            r"((MIT(-0)?|ISC|0BSD|Apache-2\.0|BSD-[23]-Clause|PSF-2\.0)( AND | OR )?)+", licence
        )
        assert permissive or name in notice, row


class Advisories(BaseHTTPRequestHandler):
    """A service of advisories, with one for every release of what `found` names."""

    found: frozenset[str] = frozenset()

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["package"]["name"]
        affected = [{"package": {"name": asked, "ecosystem": "PyPI"}}]
        told = [{"id": "TEST-1", "affected": affected, "aliases": []}]
        body = json.dumps({"vulns": told} if asked in self.found else {}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return


def audit(lock: Path, url: str) -> subprocess.CompletedProcess[str]:
    environ = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(lock.parent),
        "PIP_AUDIT_VULNERABILITY_SERVICE": "osv",
        "PIP_AUDIT_OSV_URL": url,
    }
    command = [sys.executable, str(ROOT / ".ci" / "audit"), str(lock)]
    return subprocess.run(command, env=environ, check=False, capture_output=True, text=True)


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    path = tmp_path / "lock.txt"
    digest = "0" * 64
    path.write_text(
        f"first==1.0 \\\n    --hash=sha256:{digest}\nsecond==2.0 \\\n    --hash=sha256:{digest}\n"
    )
    return path


@pytest.fixture
def service() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Advisories)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.slow
def test_an_advisory_for_what_is_locked_fails_the_audit(
    lock: Path, service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Advisories, "found", frozenset({"django"}))
    done = audit(lock, service)
    assert (done.returncode, done.stdout) == (
        0,
        "dependency audit: 2 releases, 0 with advisories\n",
    )
    monkeypatch.setattr(Advisories, "found", frozenset({"django", "second"}))
    done = audit(lock, service)
    assert done.returncode == 1
    assert done.stderr == "second 2.0: TEST-1, mended in no release yet\n"


@pytest.mark.slow
def test_without_a_service_that_knows_advisories_the_audit_says_so_in_a_line(
    lock: Path, service: str
) -> None:
    for url in (service, "http://127.0.0.1:1/"):
        done = audit(lock, url)
        assert done.returncode == 0, done.stderr
        assert re.fullmatch(r"dependency audit: nothing was audited: .+\n", done.stdout)
