"""Error events through the driver: attributed, timed out, and ended with a lost GPU."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from node_agent.nvml.driver import PynvmlDriver
from node_agent.nvml.ports import (
    DriverEvent,
    DriverEvents,
    DriverGpuLost,
    DriverNotSupported,
    DriverUnavailable,
    Guest,
    MigDriver,
)
from node_agent.nvml.simulated import GpuSpec, SimulatedNode

SHORT = 0.05


@pytest.fixture
def events(node: SimulatedNode, driver: MigDriver, gpu: str) -> Iterator[DriverEvents]:
    made = driver.events([gpu])
    yield made
    made.close()
    made.close()


def test_no_event_is_none(events: DriverEvents) -> None:
    assert events.wait(SHORT) is None


def test_an_event_names_its_instance(node: SimulatedNode, events: DriverEvents, gpu: str) -> None:
    instance, _ = node.create_instance(gpu, "1g.5gb", 3)
    node.xid(gpu, 43, instance.gi_id, 0)
    assert events.wait(SHORT) == DriverEvent(gpu, 43, instance.gi_id, 0)


def test_an_event_of_the_whole_gpu_names_none(
    node: SimulatedNode, events: DriverEvents, gpu: str
) -> None:
    node.xid(gpu, 79)
    assert events.wait(SHORT) == DriverEvent(gpu, 79, None, None)


def test_events_of_siblings_are_told_apart(
    node: SimulatedNode, events: DriverEvents, gpu: str
) -> None:
    made = [node.create_instance(gpu, "1g.5gb", start)[0].gi_id for start in (0, 1)]
    for gi_id in made:
        node.xid(gpu, 43, gi_id, 0)
    found = [events.wait(SHORT) for _ in made]
    assert [each and each.gpu_instance_id for each in found] == made


def test_a_change_of_what_the_driver_asks_for_is_no_error(
    node: SimulatedNode, events: DriverEvents, gpu: str
) -> None:
    node.set_recovery_action(gpu, "drain-p2p")
    found = events.wait(SHORT)
    assert found is not None
    assert (found.gpu_uuid, found.recovery, found.gpu_instance_id) == (gpu, True, None)
    node.xid(gpu, 79)
    assert events.wait(SHORT) == DriverEvent(gpu, 79, None, None)


def test_a_lost_gpu_ends_the_wait(node: SimulatedNode, events: DriverEvents, gpu: str) -> None:
    node.lose_gpu(gpu)
    with pytest.raises(DriverGpuLost):
        events.wait(1.0)


def test_a_closed_session_and_a_new_driver_end_the_wait(
    node: SimulatedNode, driver: MigDriver, events: DriverEvents
) -> None:
    node.reload_driver()
    with pytest.raises(DriverUnavailable):
        events.wait(SHORT)
    driver.close()
    with pytest.raises(DriverUnavailable):
        events.wait(SHORT)


def test_a_gpu_that_reports_no_events_leaves_those_of_the_others(make_node) -> None:
    node = make_node("a30", "a30")
    first, second = node.gpu_uuids()
    node.fail("nvmlDeviceGetSupportedEventTypes", 3)
    with PynvmlDriver() as driver:
        events = driver.events([first, second])
        node.xid(first, 43)
        node.xid(second, 31)
        assert events.wait(SHORT) == DriverEvent(second, 31, None, None)
        events.close()


def test_an_old_library_without_event_sets_does_not_support_them(
    node: SimulatedNode, driver: MigDriver, gpu: str
) -> None:
    node.set_options(hidden_symbols=["nvmlEventSetCreate"])
    with pytest.raises(DriverNotSupported):
        driver.events([gpu])


@pytest.mark.parametrize(
    ("spec", "guest"),
    [
        (GpuSpec("a30"), Guest.BARE_METAL),
        (GpuSpec("a30", passthrough=True), Guest.PASSTHROUGH),
        (GpuSpec("a30", mig=False, vgpu_guest=True), Guest.VGPU),
    ],
)
def test_a_guest_is_told_from_bare_metal(make_node, spec: GpuSpec, guest: Guest) -> None:
    node = make_node(spec)
    with PynvmlDriver() as driver:
        assert driver.guest(node.gpu_uuids()[0]) is guest


def test_a_library_that_cannot_tell_a_guest_says_bare_metal(
    node: SimulatedNode, driver: MigDriver, gpu: str
) -> None:
    node.set_options(hidden_symbols=["nvmlDeviceGetVirtualizationMode"])
    assert driver.guest(gpu) is Guest.BARE_METAL
