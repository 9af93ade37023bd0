"""What a check finds in clusters that people move from, read from a real API over HTTP.

``HAMI_WRITE_GOLDEN=1`` writes the expectations anew, to be read before they are kept.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from django.utils import translation

from hami_web.cluster.client import OfficialConnection
from hami_web.cluster.transport import Transport
from hami_web.migration.codes import MEANINGS, FindingCode
from hami_web.migration.examine import Examination, examine
from hami_web.migration.facts import ClusterFacts, Part
from hami_web.migration.gather import Gatherer
from hami_web.simulator.faults import RequestMatch
from hami_web.simulator.identity import AccessRule, Identities
from hami_web.simulator.resources import STORED
from hami_web.simulator.server import SimulatedApiServer, write_kubeconfig

from .clusters import CLUSTERS, Cluster

GOLDEN = Path(__file__).parents[1] / "golden" / "migration"
KINDS = {resource.kind: resource for resource in STORED}


def installed() -> SimulatedApiServer:
    """An API server on which our roles have their rights."""
    rules = [
        AccessRule(f"system:serviceaccount:hami-system:{account}", ("*",), "*")
        for account in ("hami-extender", "hami-node-agent")
    ]
    return SimulatedApiServer(identities=Identities(rules=rules))


def look(server: SimulatedApiServer, folder: Path) -> ClusterFacts:
    connection = OfficialConnection(write_kubeconfig(folder / "kubeconfig", server=server.url))
    try:
        transport = Transport(connection, user_agent="test")
        return Gatherer(transport, "hami-system", lambda _part: None).gather()
    finally:
        connection.close()


def fill(server: SimulatedApiServer, objects: Cluster) -> None:
    for document in objects:
        server.api.store.create(KINDS[document["kind"]], document)


def shown(found: Examination) -> str:
    lines = [f"{name}: {readiness}" for name, readiness in found.nodes.items()]
    lines += [
        f"{item.severity} {item.code} [{item.node or '-'}] {item.subject}: {item.evidence}"
        for item in found.findings
    ]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", sorted(CLUSTERS))
def test_a_cluster_is_judged_as_agreed(name: str, tmp_path: Path) -> None:
    with installed() as server:
        fill(server, CLUSTERS[name]())
        text = shown(examine(look(server, tmp_path)))
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("HAMI_WRITE_GOLDEN"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_the_clusters_bring_about_every_finding() -> None:
    told = "".join(path.read_text(encoding="utf-8") for path in GOLDEN.glob("*.txt"))
    # What the API server refuses is tested below.
    missing = {code for code in FindingCode if f" {code} " not in told}
    assert missing == {FindingCode.NOT_READ, FindingCode.RIGHT_MISSING}


@pytest.mark.parametrize("part", sorted(set(Part) - {Part.VERSION}))
def test_what_cannot_be_read_is_told_and_no_node_is_called_ready(
    part: Part, tmp_path: Path
) -> None:
    resource = {Part.RIGHTS: "subjectaccessreviews"}.get(part, part.value)
    with installed() as server:
        fill(server, CLUSTERS["ready_to_be_taken_over"]())
        assert set(examine(look(server, tmp_path)).nodes.values()) == {"ready"}
        server.faults.answer(403, RequestMatch(resource=resource), times=None)
        found = examine(look(server, tmp_path))
    told = [item for item in found.findings if item.code is FindingCode.NOT_READ]
    assert [item.subject for item in told] == [part]
    assert "403" in told[0].evidence
    assert "ready" not in found.nodes.values()


def test_rights_that_a_role_lacks_are_named_one_by_one(tmp_path: Path) -> None:
    with SimulatedApiServer() as server:
        found = examine(look(server, tmp_path)).findings
    lacks = [item for item in found if item.code is FindingCode.RIGHT_MISSING]
    assert len(lacks) == 10
    assert lacks[2].evidence == "hami-extender may not create pods/binding"


@pytest.mark.parametrize("code", sorted(FindingCode))
def test_every_finding_says_what_it_means_and_what_to_do_in_both_languages(
    code: FindingCode,
) -> None:
    for words in (MEANINGS[code].consequence, MEANINGS[code].mend):
        english = str(words)
        assert english.format(node="n", subject="s")
        with translation.override("zh-hans"):
            assert str(words) != english
            assert str(words).format(node="n", subject="s")
