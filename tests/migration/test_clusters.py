"""What a check finds in clusters that people move from, read from a real API over HTTP.

``HAMI_WRITE_GOLDEN=1`` writes the expectations anew, to be read before they are kept.
"""

from __future__ import annotations

import os
import socket
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread

import pytest
from django.utils import translation

from hami_web.cluster.client import OfficialConnection
from hami_web.cluster.errors import ClusterError
from hami_web.cluster.transport import Transport
from hami_web.extender.issuing import make_authority, make_certificate
from hami_web.migration.certificates import end_of_served
from hami_web.migration.codes import MEANINGS, FindingCode
from hami_web.migration.examine import Examination, examine
from hami_web.migration.facts import ClusterFacts, Part
from hami_web.migration.gather import Gatherer
from hami_web.simulator.faults import RequestMatch
from hami_web.simulator.identity import AccessRule, Identities
from hami_web.simulator.resources import STORED
from hami_web.simulator.server import SimulatedApiServer, write_kubeconfig

from .clusters import CLUSTERS, Cluster, described, pod

GOLDEN = Path(__file__).parents[1] / "golden" / "migration"
KINDS = {resource.kind: resource for resource in STORED}


def installed() -> SimulatedApiServer:
    """An API server on which our roles have their rights."""
    rules = [
        AccessRule(f"system:serviceaccount:hami-system:{account}", ("*",), "*")
        for account in ("hami-extender", "hami-node-agent")
    ]
    return SimulatedApiServer(identities=Identities(rules=rules))


def look(server: SimulatedApiServer, folder: Path, node: str = "") -> ClusterFacts:
    connection = OfficialConnection(write_kubeconfig(folder / "kubeconfig", server=server.url))
    try:
        transport = Transport(connection, user_agent="test")
        return Gatherer(transport, "hami-system", lambda _part: None, node).gather()
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
    assert missing == {
        *(FindingCode.NOT_READ, FindingCode.RIGHT_MISSING, FindingCode.CERTIFICATE_EXPIRES)
    }


@pytest.mark.parametrize("part", sorted(set(Part) - {Part.VERSION, Part.CERTIFICATE}))
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


def test_a_check_of_one_node_reads_what_concerns_it_and_says_the_same(tmp_path: Path) -> None:
    name = "a_plugin_that_runs_on_some_nodes_only"
    budget = described("PodDisruptionBudget", "b", "team-b", status={"disruptionsAllowed": 0},
                       spec={"selector": {"matchLabels": {"app": "b"}}})  # fmt: skip
    here = pod("here", "by-taint", "team-b", limits={"nvidia.com/gpu": "1"}, labels={"app": "b"})
    with installed() as server:
        fill(server, [*CLUSTERS[name](), budget, here, pod("there", "by-affinity")])
        every, one = look(server, tmp_path), look(server, tmp_path, "by-taint")
        nobody = examine(look(server, tmp_path, "absent"))
    assert [item.name for item in one.nodes] == ["by-taint"]
    assert [item.full_name for item in one.pods] == ["team-b/here"]
    all_found, found = examine(every), examine(one)
    assert found.nodes == {"by-taint": all_found.nodes["by-taint"]}
    concerns = [item for item in all_found.findings if item.node in ("", "by-taint")]
    assert list(found.findings) == concerns
    assert FindingCode.BUDGET_BLOCKS in {item.code for item in concerns}
    assert nobody.nodes == {}
    assert "there is no node absent" in {item.evidence for item in nobody.findings}


def test_what_the_extender_serves_is_looked_at_where_it_serves_tls(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    authority = make_authority(now)
    signed = make_certificate(authority, ["localhost"], now)
    (tmp_path / "served.pem").write_bytes(signed.certificate + signed.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "served.pem")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"https://127.0.0.1:{listening.getsockname()[1]}"
        serving = Thread(target=lambda: context.wrap_socket(listening.accept()[0], True).close())
        serving.start()
        ends = end_of_served(url)
        serving.join(10)
    assert ends is not None
    assert timedelta(days=364) < ends - now < timedelta(days=366)
    assert end_of_served("http://127.0.0.1:1") is None
    with pytest.raises(ClusterError, match=f"certificate of {url}"):
        end_of_served(url)
    told = {}
    for days in (400, 10, -1):
        facts = ClusterFacts("ns", certificate_ends=ends, read_at=ends - timedelta(days=days))
        codes = {item.code for item in examine(facts).findings}
        told[days] = codes & {FindingCode.CERTIFICATE_EXPIRED, FindingCode.CERTIFICATE_EXPIRES}
    assert told == {
        400: set(),
        10: {FindingCode.CERTIFICATE_EXPIRES},
        -1: {FindingCode.CERTIFICATE_EXPIRED},
    }
