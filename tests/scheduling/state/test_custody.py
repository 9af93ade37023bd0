"""What people write on their own Pods changes nothing for others, where reservations are signed."""

from __future__ import annotations

import base64
import copy
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_web.cluster.views import NodeView, PodView
from hami_web.core import annotations as keys
from hami_web.core.blocked import ALTERED, BlockedInterval
from hami_web.core.device_list import ListedDevice, encode_devices
from hami_web.core.placement import Placement
from hami_web.core.policy import SchedulingPolicy
from hami_web.core.reservation import Reservation, RuntimeIdentity, encode_allocations
from hami_web.core.signature import KeyFile, parse_key_ring
from hami_web.scheduling.custody import Custody
from hami_web.scheduling.nodelock import LockChanges
from hami_web.scheduling.problems import ProblemCode
from hami_web.scheduling.sinks import NodeSink, PodSink
from hami_web.scheduling.state import ClusterState, Held
from hami_web.scheduling.waiting import WaitingPods
from tests.builders import reservation
from tests.scheduling.state.cluster import a100s, bound, node, pod, request_of

NODE = "node-1"
GPUS = ("GPU-node-1-0", "GPU-node-1-1")
KEYS = f"k1 {base64.b64encode(b'1' * 32).decode()}\n"
RING = parse_key_ring(KEYS, "keys")
OTHER = parse_key_ring(f"k1 {base64.b64encode(b'2' * 32).decode()}\n", "keys")


@pytest.fixture(scope="module")
def key_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("keys") / "keys"
    path.write_text(KEYS)
    return KeyFile(path)


def at(start, size=2, name="2g.10gb", gpu=GPUS[0], **more):
    return reservation(gpu=gpu, name=name, start=start, size=size, **more)


def verified_node(blocked=(), verified="true"):
    view = node(NODE, a100s(NODE, 2), blocked=blocked)
    view.metadata.annotations[keys.NODE_MIG_VERIFIED] = verified
    return view


def signed(uid, *reservations, ring=RING, **more):
    signature = ring.sign(uid, NODE, reservations)
    annotations = {keys.POD_MIG_SIGNATURE: signature}
    return pod(uid, on=NODE, reservations=reservations, annotations=annotations, **more)


@dataclass
class World:
    """The extender's sinks as they are wired, on one node with an agent."""

    key_file: KeyFile | None
    view: NodeView = field(default_factory=verified_node)
    agent: bool | None = True

    def __post_init__(self):
        self.state = ClusterState(SchedulingPolicy())
        self.custody = Custody(self.state, self.key_file)
        self.nodes = NodeSink(self.state, LockChanges(), self.custody)
        self.pods = PodSink(self.state, WaitingPods(), self.custody, "hami-scheduler")
        self.nodes.replace([self.view], listed_at=0.0)
        self.state.set_agent(NODE, self.agent)

    def show(self, view: PodView):
        """As the watch decodes it: an object of its own each time."""
        self.pods.put(copy.deepcopy(view))

    def relist(self, *views: PodView):
        self.pods.replace([copy.deepcopy(view) for view in views], listed_at=1e12)

    @property
    def node(self):
        return self.state.snapshot().nodes[NODE]

    @property
    def taken(self):
        return [gpu.state & gpu.table.slice_mask for gpu in self.node.gpus]

    @property
    def codes(self):
        return sorted((item.pod.uid, item.code) for item in self.custody.problems())


@pytest.fixture
def world(key_file):
    return World(key_file)


def rewritten(view, **changes):
    """The Pod after its tenant wrote on it; None takes a key off."""
    names = {
        "text": keys.POD_MIG_ALLOCATIONS,
        "listed": keys.POD_DEVICES_ALLOCATED,
        "signature": keys.POD_MIG_SIGNATURE,
    }
    after = copy.deepcopy(view)
    for name, value in changes.items():
        if value is None:
            after.metadata.annotations.pop(names[name], None)
        else:
            after.metadata.annotations[names[name]] = value
    return after


FORGED = encode_allocations([at(0, 8, "7g.40gb", GPUS[1])])
ALTERATIONS = [
    {"text": None},
    {"text": None, "signature": None},
    {"text": ""},
    {"text": "[]"},
    {"text": "[{"},
    {"text": FORGED},
    {"signature": None},
    {"signature": "v1.k1.00"},
    {"listed": "nonsense"},
    {"listed": encode_devices([[ListedDevice(GPUS[1], 1, 1)]])},
]


@pytest.mark.parametrize("change", ALTERATIONS)
def test_a_reservation_that_is_altered_after_it_was_seen_stays_what_it_was(world, change):
    mine = signed("mine", at(2))
    world.show(mine)
    before = world.node
    world.show(rewritten(mine, **change))
    assert world.taken == [0b1100, 0]
    assert (world.node.closed, world.node.doubts) == (None, ())
    assert [gpu.refusal for gpu in world.node.gpus] == [None, None]
    assert {c.reservation.key for c in world.node.gpus[0].claims} == {(0, 0)}
    told = world.codes
    assert told == ([] if "listed" in change else [("mine", ProblemCode.ALTERED)])
    world.show(mine)
    assert (world.codes, world.taken) == ([], [0b1100, 0])
    assert before.gpus[0].claims == world.node.gpus[0].claims


@pytest.mark.parametrize("change", ALTERATIONS)
def test_it_stays_through_lists_that_begin_anew_and_frees_when_the_pod_is_over(world, change):
    mine = signed("mine", at(2))
    world.show(mine)
    for _ in range(2):
        world.relist(rewritten(mine, **change))
        world.pods.look_again()
        assert world.taken == [0b1100, 0]
    over = signed("mine", at(2), phase="Succeeded")
    world.show(rewritten(over, **change))
    assert (world.taken, world.codes) == ([0, 0], [])


def test_a_deleting_pod_whose_reservation_is_altered_occupies_until_it_is_gone(world):
    mine = signed("mine", at(2))
    world.show(mine)
    world.show(rewritten(signed("mine", at(2), deleting=True), text="[]"))
    assert world.taken == [0b1100, 0]
    world.pods.remove(mine.metadata)
    assert (world.taken, world.codes) == ([0, 0], [])


def test_an_altered_reservation_of_which_only_the_binding_was_known_stays(world):
    view = pod("mine", 9000)
    found = world.state.filter(view, request_of(view), [NODE])
    assert isinstance(found, Held)
    world.state.mark_binding("mine")
    world.state.confirm("mine")
    taken = world.taken
    altered = rewritten(bound(view, found.hold), text="[]", signature="v1.k1.0")
    for _ in range(2):
        world.show(altered)
        world.pods.look_again()
        assert (world.taken, world.codes) == (taken, [("mine", ProblemCode.ALTERED)])


def test_a_hold_that_was_never_bound_here_is_not_kept_for_a_pod_that_others_bound(world):
    view = pod("mine", 9000)
    assert isinstance(world.state.filter(view, request_of(view), [NODE]), Held)
    world.show(pod("mine", 9000, on=NODE))
    assert (world.taken, world.codes) == ([0, 0], [])


@pytest.mark.parametrize(
    "view",
    [
        pod("forged", on=NODE, reservations=[at(0, 8, "7g.40gb")]),
        signed("forged", at(0, 8, "7g.40gb"), ring=OTHER),
        rewritten(signed("another", at(0)), signature=RING.sign("x", NODE, [at(0)])),
        pod("forged", on=NODE, annotations={keys.POD_MIG_ALLOCATIONS: "[{"}),
        pod("forged", on=NODE, reservations=[at(0, gpu="GPU-elsewhere")]),
        pod("forged", on=NODE, annotations={keys.POD_DEVICES_ALLOCATED: f"{GPUS[0]},NVIDIA,1,1:;"}),
        pod("forged", on=NODE, annotations={keys.POD_DEVICES_ALLOCATED: ";;,,:"}),
    ],
)
def test_what_the_scheduler_did_not_sign_takes_and_closes_nothing(world, view):
    world.show(signed("real", at(2)))
    world.show(view)
    assert world.taken == [0b1100, 0]
    assert world.node.closed is None
    assert world.codes == [(view.uid, ProblemCode.UNTRUSTED)]
    world.relist(signed("real", at(2)), view)
    world.pods.look_again()
    assert (world.taken, world.node.closed) == ([0b1100, 0], None)


@pytest.mark.parametrize(("verified", "agent"), [("", True), ("true", None)])
def test_where_no_agent_tells_what_is_live_an_unsigned_reservation_counts(
    key_file, verified, agent
):
    world = World(key_file, verified_node(verified=verified), agent)
    world.show(pod("hami", on=NODE, reservations=[at(2)]))
    assert world.taken == [0b1100, 0]
    assert world.codes == [("hami", ProblemCode.UNTRUSTED)]
    world.nodes.put(verified_node(blocked=[BlockedInterval(GPUS[0], Placement(2, 2), ALTERED)]))
    world.state.set_agent(NODE, alive=True)
    world.pods.look_again()
    assert world.taken == [0b1100, 0]
    assert world.node.gpus[0].claims == ()


def test_what_an_agents_node_has_in_use_stays_taken_after_a_restart(key_file):
    blocked = [BlockedInterval(GPUS[0], Placement(2, 2), ALTERED)]
    world = World(key_file, verified_node(blocked))
    world.relist(rewritten(signed("mine", at(2)), text="[]"))
    assert world.taken == [0b1100, 0]


def test_a_key_that_comes_later_settles_what_was_not_trusted(key_file, tmp_path):
    path = tmp_path / "keys"
    path.write_text(f"k0 {base64.b64encode(b'0' * 32).decode()}\n")
    world = World(KeyFile(path))
    world.show(signed("mine", at(2)))
    assert world.codes == [("mine", ProblemCode.UNTRUSTED)]
    path.write_text(path.read_text() + KEYS)
    world.pods.look_again()
    assert (world.codes, world.taken) == ([], [0b1100, 0])


def test_the_runtime_identity_that_an_agent_adds_is_taken_over(world):
    world.show(signed("mine", at(2)))
    realized = at(2, identity=RuntimeIdentity("MIG-1", 3, 0))
    view = signed("mine", realized)
    world.show(view)
    (claim,) = world.node.gpus[0].claims
    assert claim.identity == RuntimeIdentity("MIG-1", 3, 0)
    world.show(rewritten(view, text="[]"))
    assert world.node.gpus[0].claims == (claim,)


def test_a_pod_that_is_gone_from_a_complete_list_is_forgotten(world):
    world.show(rewritten(signed("a", at(2)), text="[{"))
    world.show(signed("b", at(4)))
    world.relist()
    assert (world.codes, world.taken, world.custody.doubted()) == ([], [0, 0], [])


@pytest.mark.parametrize("change", [{"text": None}, {"text": ""}, {"text": "[]"}])
def test_without_keys_a_reservation_that_is_taken_off_stays(change):
    world = World(None)
    mine = pod("mine", on=NODE, reservations=[at(2)])
    world.show(mine)
    world.show(rewritten(mine, **change))
    world.relist(rewritten(mine, **change))
    assert (world.taken, world.codes) == ([0b1100, 0], [("mine", ProblemCode.ALTERED)])
    world.show(mine)
    assert world.codes == []


def test_without_keys_one_that_cannot_be_read_any_more_closes_the_node_and_stays():
    world = World(None)
    mine = pod("mine", on=NODE, reservations=[at(2)])
    world.show(mine)
    world.relist(rewritten(mine, text='[{"gpuUUID"'))
    assert (world.taken, str(world.node.closed)) == ([0b1100, 0], "NodeReservationMalformed")
    world.show(rewritten(mine, text=None))
    assert (world.taken, world.node.closed) == ([0b1100, 0], None)


TEXTS = st.one_of(
    st.sampled_from(["", "[]", "{}", "[{", "null", "\x00", FORGED]),
    st.lists(
        st.builds(
            Reservation,
            st.integers(0, 2),
            st.integers(0, 2),
            st.sampled_from([*GPUS, "GPU-elsewhere"]),
            st.sampled_from(["1g.5gb", "3g.20gb", "7g.40gb", "odd"]),
            st.builds(Placement, st.integers(0, 9), st.integers(1, 9)),
        ),
        max_size=3,
    ).map(encode_allocations),
    st.text(max_size=12),
)
SIGNATURES = st.one_of(
    st.sampled_from(["", "v1.k1.0", "v9.k1.0", RING.sign("real", NODE, [at(4)])]),
    st.text(max_size=8),
)
WRITES = st.tuples(
    st.sampled_from(["own-gpu", "own-plain", "own-new"]),
    st.dictionaries(
        st.sampled_from(["text", "listed", "signature"]), st.none() | TEXTS | SIGNATURES, min_size=1
    ),
    st.sampled_from(["put", "relist", "again"]),
)


@given(writes=st.lists(WRITES, max_size=8))
def test_whatever_tenants_write_on_their_own_pods_others_have_what_they_had(key_file, writes):
    """The node's record is the same as if nothing had been written."""
    world = World(key_file)
    pods = {
        "real": signed("real", at(4)),
        "own-gpu": signed("own-gpu", at(2)),
        "own-plain": pod("own-plain", on=NODE, annotations={}),
        "own-new": pod("own-new", on=NODE, annotations={}),
    }
    for view in pods.values():
        if view.uid != "own-new":
            world.show(view)
    expected = (world.taken, world.node.gpus[0].claims, world.node.gpus[1].claims)
    for uid, change, how in writes:
        pods[uid] = rewritten(pods[uid], **change)
        if how == "relist":
            world.relist(*pods.values())
        else:
            world.show(pods[uid])
            if how == "again":
                world.pods.look_again()
        claims = [sorted(gpu.claims, key=lambda c: c.pod.uid) for gpu in world.node.gpus]
        before = [sorted(found, key=lambda c: c.pod.uid) for found in expected[1:]]
        assert (world.taken, claims) == (expected[0], before)
        assert (world.node.closed, world.node.doubts) == (None, ())
        assert world.node.open_gpus == world.node.gpus


@given(writes=st.lists(WRITES, max_size=4))
def test_after_a_restart_others_have_no_less_and_what_is_in_use_is_not_given_away(key_file, writes):
    """The agent publishes the live instance whose Pod no longer tells of it."""
    pods = {
        "real": signed("real", at(4)),
        "own-gpu": signed("own-gpu", at(2)),
        "own-plain": pod("own-plain", on=NODE, annotations={}),
        "own-new": pod("own-new", on=NODE, annotations={}),
    }
    for uid, change, _ in writes:
        pods[uid] = rewritten(pods[uid], **change)
    blocked = [BlockedInterval(GPUS[0], Placement(2, 2), ALTERED)]
    world = World(key_file, verified_node(blocked))
    world.relist(*pods.values())
    assert world.taken == [0b111100, 0]
    assert (world.node.closed, world.node.open_gpus) == (None, world.node.gpus)
