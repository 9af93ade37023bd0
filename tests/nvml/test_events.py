"""Xid events: attributed to instances, to whole GPUs, or lost with the GPU."""

from __future__ import annotations

import threading
import time

import pytest

XID = 0x8
ANY = 0xFFFFFFFF


@pytest.fixture
def events(session, device):
    """A set that listens to the A100 only."""
    made = session.nvmlEventSetCreate()
    session.nvmlDeviceRegisterEvents(device, XID, made)
    yield made
    session.nvmlEventSetFree(made)


def test_an_event_names_gpu_xid_and_instance(node, session, events):
    instance, _ = node.create_instance(0, "1g.5gb", 3)
    node.xid(0, 43, instance.gi_id, 0)
    event = session.nvmlEventSetWait_v2(events, 100)
    assert session.nvmlDeviceGetUUID(event.device) == node.gpu(0).uuid
    assert (event.eventType, event.eventData) == (XID, 43)
    assert (event.gpuInstanceId, event.computeInstanceId) == (instance.gi_id, 0)


def test_an_event_of_the_whole_gpu_names_no_instance(node, session, events):
    node.xid(0, 79)
    event = session.nvmlEventSetWait_v2(events, 100)
    assert (event.gpuInstanceId, event.computeInstanceId) == (ANY, ANY)


def test_events_come_once_and_in_order(node, session, events):
    node.xid(0, 13)
    node.xid(0, 31)
    found = [session.nvmlEventSetWait_v2(events, 100).eventData for _ in range(2)]
    assert found == [13, 31]
    with pytest.raises(session.NVMLError_Timeout):
        session.nvmlEventSetWait_v2(events, 1)


def test_events_of_other_gpus_and_from_before_do_not_come(node, session):
    node.xid(0, 13)
    events = session.nvmlEventSetCreate()
    session.nvmlDeviceRegisterEvents(session.nvmlDeviceGetHandleByIndex(0), XID, events)
    node.xid(1, 31)
    with pytest.raises(session.NVMLError_Timeout):
        session.nvmlEventSetWait_v2(events, 1)


def test_a_waiting_thread_is_woken_by_an_event(node, session, events):
    found = []
    waiter = threading.Thread(
        target=lambda: found.append(session.nvmlEventSetWait_v2(events, 5000).eventData)
    )
    start = time.monotonic()
    waiter.start()
    node.xid(0, 94)
    waiter.join()
    assert found == [94]
    assert time.monotonic() - start < 2


def test_the_loss_of_a_gpu_ends_the_wait(node, session, events):
    node.lose_gpu(0)
    with pytest.raises(session.NVMLError_GpuIsLost):
        session.nvmlEventSetWait_v2(events, 1000)


def test_without_privilege_only_events_of_whole_gpus_come(node, session, events):
    node.set_options(permission="user")
    node.xid(0, 13, 7, 0)
    node.xid(0, 79)
    assert session.nvmlEventSetWait_v2(events, 100).eventData == 79


def test_an_unsupported_event_type_is_refused(session, device):
    supported = session.nvmlDeviceGetSupportedEventTypes(device)
    events = session.nvmlEventSetCreate()
    session.nvmlDeviceRegisterEvents(device, supported, events)
    with pytest.raises(session.NVMLError_NotSupported):
        session.nvmlDeviceRegisterEvents(device, supported | 0x4, events)


def test_a_freed_set_is_refused(session):
    events = session.nvmlEventSetCreate()
    session.nvmlEventSetFree(events)
    with pytest.raises(session.NVMLError_InvalidArgument):
        session.nvmlEventSetWait_v2(events, 1)
