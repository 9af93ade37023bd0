"""What the demo's dashboard must tell of the cluster while the story plays."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import Any

from hami_web.core.reasons import Reason
from hami_web.history.conditions import AlertCode
from hami_web.history.models import AlertState
from hami_web.planning.layout import BLOCKED
from hami_web.simulator.demo_board import CHAPTERS
from hami_web.simulator.demo_cluster import DemoCluster
from hami_web.simulator.demo_expect import NotYet
from hami_web.simulator.demo_plan import NAMESPACE


@dataclass(frozen=True, slots=True)
class Room:
    """Placements of a profile that are free now, and what the same memory slices could give."""

    now: int
    packed: int


def announced(cluster: DemoCluster) -> str:
    """The address of the page that the banner leads to; banner and page must answer."""
    position = cluster.board.position()
    banner = cluster.dashboard.page("demo/banner")
    where = f"{position.chapter} of {len(CHAPTERS)}" if position else "no chapter"
    link = re.search(rf"{where}</b>.*?<a href=\"/([^\"]*)\"", banner, re.DOTALL)
    if link is None or not cluster.dashboard.page(html.unescape(link[1])):
        raise NotYet(f"the banner at {where} is {banner!r}")
    return link[1]


def no_room(cluster: DemoCluster, profile: str) -> Room:
    """Nothing of the profile fits, though the free memory slices would be enough."""
    found = cluster.dashboard.document("fragmentation", {}).get("rooms", [])
    rooms = [Room(row["now"], row["packed"]) for row in found if row["profile"] == profile]
    if not rooms:
        raise NotYet(f"the dashboard knows no room for {profile}")
    if rooms[0].now or not rooms[0].packed:
        raise NotYet(f"the room for {profile} is {rooms[0]}")
    return rooms[0]


def explained(cluster: DemoCluster, name: str, gpus: int) -> str:
    """The sentence of a waiting Pod's page, which must also name each of so many GPUs."""
    page = cluster.dashboard.page(f"pods/{NAMESPACE}/{name}")
    sentence = re.search(r'verdict bad">.*?<p>(.*?)</p>', page, re.DOTALL)
    lines = re.findall(
        rf'href="[^"]*/gpus/[^"]+">.*?<code>{Reason.TOPOLOGY_INFEASIBLE}</code>', page
    )
    if sentence is None or len(lines) != gpus:
        raise NotYet(f"the page of {name} tells of {len(lines)} GPUs, not {gpus}")
    return html.unescape(re.sub(r"<[^>]+>", "", sentence[1]))


def planned(cluster: DemoCluster, profile: str) -> str:
    """The only Pod that has to move for one placement of the profile; it has somewhere to go."""
    plan = cluster.dashboard.document("drain-plan", {"profile": profile, "count": "1"})
    moves: list[dict[str, Any]] = plan.get("moves", [])
    if len(moves) != 1 or not plan["exact"] or not moves[0]["homes"]:
        raise NotYet(f"the plan for {profile} is {plan or 'not there'}")
    return str(moves[0]["pod"])


def shown_foreign(cluster: DemoCluster, gpu_uuid: str) -> None:
    """The map has memory slices of the GPU as blocked."""
    found = cluster.dashboard.document(f"gpus/{gpu_uuid}/map", {}).get("intervals", [])
    if not any(each["state"] == BLOCKED for each in found):
        raise NotYet(f"the map of {gpu_uuid} is {found}")


def foreign_alert(cluster: DemoCluster, gpu_uuid: str, state: AlertState) -> str:
    """The newest alert about an instance of the GPU that nobody reserved, in this state."""
    query = {"code": AlertCode.FOREIGN_INSTANCE.value, "ordering": "-raised_at"}
    rows = cluster.dashboard.rows("alerts", query)
    states = [str(row["state"]) for row in rows if row["subject"].startswith(gpu_uuid)]
    if not states or states[0] != state:
        raise NotYet(f"alerts of {gpu_uuid}: {states or 'none'}, not {state.value}")
    return states[0]
