"""What the documents tell people to type, set and open is there."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import get_commands, load_command_class
from django.urls import Resolver404, resolve

from hami_web.history.conditions import AlertCode
from tests.deploy.chart import CHART, program

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "deploy").rglob("*.md")])
LIVING = [path for path in DOCUMENTS if "adr" not in path.parts and path.name != "CHANGELOG.md"]
"""Records of decisions and the changelog tell of their day."""


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def spans(text: str) -> list[str]:
    """Code in the lines of a document."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"(?ms)^```.*?^```", "", text))


def lines(text: str) -> list[str]:
    """Lines of its blocks of code, without comments."""
    blocks = re.findall(r"(?ms)^```[a-z]*\n(.*?)^```", text)
    return [re.sub(r"\s+# .*", "", line) for block in blocks for line in block.splitlines()]


def code() -> str:
    folders = ("hami_web", "node_agent", "tests", "deploy")
    found = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return "\n".join(path.read_text("utf-8") for path in found)


def test_every_variable_that_a_document_names_is_read_somewhere() -> None:
    known = set(re.findall(r"\bHAMI_[A-Z_]+\b", code()))
    for document in LIVING:
        named = set(re.findall(r"\bHAMI_[A-Z_]+[A-Z]\b", document.read_text("utf-8")))
        missing = {n for n in named - known if n.removesuffix("_FILE") not in known}
        assert not missing, name_of(document)


def test_every_path_of_the_project_that_a_document_names_exists() -> None:
    ours = r"(?:deploy|tests|docs|hami_web|node_agent|templates|static|\.ci)/[\w./*-]*"
    for document in LIVING:
        for span in spans(document.read_text("utf-8")):
            if re.fullmatch(ours, span):
                assert list(ROOT.glob(span.rstrip("/"))), f"{name_of(document)}: {span}"


def managed(text: str) -> list[tuple[str, list[str]]]:
    """Name and options of each call of manage.py, or of the command that is installed."""
    call = re.compile(r"(?:^| )(?:manage\.py|hami-web) ([a-z][a-z_]+)((?: [^|&;>]*)?)")
    found = [match for line in (*lines(text), *spans(text)) for match in call.findall(line)]
    return [(name, re.findall(r"(?<= )--[a-z-]+", rest)) for name, rest in found]


@cache
def options_of(name: str) -> frozenset[str] | None:
    """What a command of manage.py takes; None where there is no such command."""
    application = get_commands().get(name)
    if application is None:
        return None
    command = load_command_class(application, name) if isinstance(application, str) else application
    return frozenset(command.create_parser("manage.py", name)._option_string_actions)


def test_every_command_and_option_that_a_document_calls_exists() -> None:
    called = [
        (name_of(document), name, options)
        for document in LIVING
        for name, options in managed(document.read_text("utf-8"))
    ]
    assert len(called) > 20
    for document, name, options in called:
        known = options_of(name)
        assert known is not None, f"{document}: {name}"
        assert set(options) <= known, f"{document}: {name} {options}"


def chart_values() -> dict[str, Any]:
    return json.loads((CHART / "values.schema.json").read_text("utf-8"))


def takes(schema: dict[str, Any], path: list[str]) -> bool:
    """Whether the chart has a value of that path; `*` ends one."""
    if not path or path == ["*"]:
        return True
    inner = schema.get("properties", {}).get(path[0])
    return inner is not None and takes(inner, path[1:])


def test_every_value_of_the_chart_that_the_installation_names_is_taken() -> None:
    text = (DOCS / "installation.md").read_text("utf-8")
    tables = [line for line in text.splitlines() if re.match(r"\|.*\| ?`?", line)]
    wanted: list[str] = []
    for line in tables:
        base = ""
        for span in spans(line):
            path = span.split("=")[0]
            if path.startswith(".") and base:
                path = base.rsplit(".", 1)[0] + path
            if re.fullmatch(r"[a-z][A-Za-z-]*(\.[A-Za-z*]+)+", path) and "/" not in path:
                base = base or path
                wanted.append(path)
    assert len(wanted) > 40
    schema = chart_values()
    refused = [path for path in wanted if not takes(schema, path.split("."))]
    assert refused == []


def test_every_workload_that_a_command_names_is_in_the_manifests() -> None:
    manifests = ROOT / "deploy" / "kustomize" / "overlays" / "all-in-one" / "hami-web.yaml"
    objects = [found for found in yaml.safe_load_all(manifests.read_text("utf-8")) if found]
    base = ROOT / "deploy" / "kustomize" / "base" / "hami-web.yaml"
    objects += [found for found in yaml.safe_load_all(base.read_text("utf-8")) if found]
    there = {f"{found['kind'].lower()}/{found['metadata']['name']}" for found in objects}
    for document in LIVING:
        text = document.read_text("utf-8")
        for named in re.findall(r"\b((?:deployment|daemonset|cronjob)/[a-z-]+)", text):
            assert named in there, f"{name_of(document)}: {named}"


@pytest.mark.skipif(program("helm") is None, reason="needs helm: .ci/helm")
def test_helm_takes_what_the_documents_tell_it() -> None:
    helm = program("helm")
    assert helm is not None
    tried = set()
    for document in LIVING:
        for line in lines(document.read_text("utf-8")):
            if re.match(r"helm (install|upgrade) ", line):
                words = shlex.split(line)
                kept = [w for w in words[2:] if w not in ("--create-namespace",)]
                if "--values" in kept:
                    at = kept.index("--values")
                    kept[at : at + 2] = []
                tried.add(tuple(kept))
    assert tried
    for arguments in tried:
        done = subprocess.run(
            [helm, "template", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


PLACES = {"NAMESPACE": "a", "NAME": "b", "NODE": "b", "UUID": "GPU-1", "ID": "1"}


def opens(address: str) -> bool:
    """Whether the web role has such an address; words in capitals stand for something."""
    path = re.split(r"[?#…]", address)[0]
    for place, stands in PLACES.items():
        path = re.sub(rf"(?<=/){place}(?=/|$|\.)", stands, path)
    try:
        resolve(path)
    except Resolver404:
        return False
    return True


def test_every_page_and_every_call_that_a_document_names_is_there() -> None:
    for document in sorted([DOCS / "dashboard.md", *(DOCS / "runbooks").glob("*.md")]):
        for span in spans(document.read_text("utf-8")):
            address = span.removeprefix("GET ")
            if re.match(r"/[a-z]*(/|\?|$)", address) and address != "/decisions":
                assert opens(address), f"{name_of(document)}: {span}"
    table = (DOCS / "api.md").read_text("utf-8").split("## Problems")[0]
    for span in spans(table):
        address = re.sub(r"^(GET|POST) ", "", span)
        if re.match(r"/[a-z]", address) and not address.startswith(("/api", "/filter")):
            assert opens(f"/api/v1{address}"), span


@pytest.mark.parametrize("alert", sorted(AlertCode))
def test_every_alert_is_explained(alert: AlertCode) -> None:
    text = (DOCS / "operations.md").read_text("utf-8")
    assert re.search(rf"^\| `{alert}` \| .+ \| .+ \|$", text, re.MULTILINE)
