"""Log records of the agent: JSON lines that name Pod, GPU and placement."""

from __future__ import annotations

import json
from typing import Any

from tests.node_agent.lab import Lab, wait_until


def records(lab: Lab, message: str) -> list[dict[str, Any]]:
    lines = (lab.folder / "agent.log").read_text().splitlines()
    return [entry for entry in map(json.loads, lines) if entry["message"].startswith(message)]


def test_the_life_of_an_instance_can_be_followed_by_its_fields(lab: Lab) -> None:
    where = {"gpu": lab.gpus[0], "profile": "1g.5gb", "placement": "6:1", "pod": "default/job"}
    where |= {"role": "node-agent", "node": "gpu-n1"}
    with lab.agent_process(HAMI_LOG_FORMAT="json"):
        where["pod_uid"] = lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        lab.kubelet.allocate(lab.ids()[0])
        process = lab.hardware.attach(0, lab.hardware.gpu(0).instances[0].gi_id, 0)
        lab.set_status("job", "Succeeded", "terminated")
        wait_until(lambda: records(lab, "1g.5gb at 6:1"), "refused")
        lab.hardware.detach(process)
        wait_until(lambda: lab.journal() == [], "reclaimed")
        wait_until(lambda: records(lab, "reclaimed instance"), "told")
    for message in ("realized instance", "1g.5gb at 6:1", "reclaimed instance"):
        (*_, entry) = records(lab, message)
        assert where.items() <= entry.items()
        assert {"time", "level", "logger"} <= entry.keys()
    assert records(lab, "realized instance")[0]["mig_uuid"].startswith("MIG-")
