"""Functions of the simulated library as pynvml calls them."""

from __future__ import annotations

import ctypes
import time
from ctypes import byref

import pytest

from node_agent.nvml.simulated import Fault, layout, mutations
from node_agent.nvml.simulated.calling import SYMBOLS
from node_agent.nvml.simulated.session_symbols import SESSION_FUNCTIONS

MIB = 1 << 20


def code_of(session, call, *arguments):
    """The NVML code that the call raises."""
    with pytest.raises(session.NVMLError) as caught:
        call(*arguments)
    return caught.value.value


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (layout.Placement, "c_nvmlGpuInstancePlacement_t"),
        (layout.Placement, "c_nvmlComputeInstancePlacement_t"),
        (layout.GpuInstanceProfile, "c_nvmlGpuInstanceProfileInfo_t"),
        (layout.GpuInstanceProfileV2, "c_nvmlGpuInstanceProfileInfo_v2_t"),
        (layout.ComputeInstanceProfile, "c_nvmlComputeInstanceProfileInfo_t"),
        (layout.ComputeInstanceProfileV2, "c_nvmlComputeInstanceProfileInfo_v2_t"),
        (layout.GpuInstanceInfo, "c_nvmlGpuInstanceInfo_t"),
        (layout.ComputeInstanceInfo, "c_nvmlComputeInstanceInfo_t"),
        (layout.DeviceAttributes, "c_nvmlDeviceAttributes"),
        (layout.Memory, "c_nvmlMemory_t"),
        (layout.MemoryV2, "c_nvmlMemory_v2_t"),
        (layout.ProcessInfo, "c_nvmlProcessInfo_v3_t"),
        (layout.PciInfo, "nvmlPciInfo_t"),
        (layout.EventData, "c_nvmlEventData_t"),
        (layout.Value, "c_nvmlValue_t"),
        (layout.FieldValue, "c_nvmlFieldValue_t"),
    ],
)
def test_layouts_agree_with_pynvml_byte_for_byte(session, ours, theirs):
    other = getattr(session, theirs)
    assert ctypes.sizeof(ours) == ctypes.sizeof(other)
    assert [getattr(ours, name).offset for name, _ in ours._fields_] == [
        getattr(other, field[0]).offset for field in other._fields_
    ]


def test_nothing_works_before_init(session):
    session.nvmlShutdown()
    assert code_of(session, session.nvmlDeviceGetCount) == 1
    assert code_of(session, session.nvmlShutdown) == 1


def test_inits_are_counted(session):
    session.nvmlInit()
    session.nvmlShutdown()
    assert session.nvmlDeviceGetCount() == 2


def test_a_handle_of_an_earlier_session_is_refused(session, device):
    session.nvmlShutdown()
    session.nvmlInit()
    assert code_of(session, session.nvmlDeviceGetName, device) == 2


def test_versions_and_error_texts_are_strings(session):
    assert session.nvmlSystemGetDriverVersion().count(".") == 2
    assert session.nvmlSystemGetNVMLVersion()
    assert "in use" in session.nvmlErrorString(19)


def test_an_absent_function_is_not_found(session, device):
    assert code_of(session, session.nvmlDeviceGetFanSpeed, device) == 13


def test_a_function_hidden_later_is_not_found_either(node, session, device):
    assert session.nvmlDeviceGetName(device)
    node.set_options(hidden_symbols=["nvmlDeviceGetName"])
    assert code_of(session, session.nvmlDeviceGetName, device) == 13


def test_a_wrong_structure_version_is_refused(session, device):
    info = session.c_nvmlGpuInstanceProfileInfo_v2_t()
    info.version = 0x1000098
    function = session._nvmlGetFunctionPointer("nvmlDeviceGetGpuInstanceProfileInfoV")
    assert function(device, 0, byref(info)) == 25


def test_a_profile_number_past_the_end_is_invalid_and_an_absent_one_unsupported(session, device):
    call = session.nvmlDeviceGetGpuInstanceProfileInfo
    assert code_of(session, call, device, 18) == 2
    assert code_of(session, call, device, 5) == 3


def test_a_profile_has_two_numbers_and_a_prefixed_name(session, device):
    by_number = session.nvmlDeviceGetGpuInstanceProfileInfo(device, 9)
    assert (by_number.id, by_number.name) == (15, "MIG 1g.10gb")
    assert session.nvmlDeviceGetGpuInstanceProfileInfoById(device, 15).name == "MIG 1g.10gb"


def test_the_driver_does_not_choose_the_first_placement(session, device):
    handle = session.nvmlDeviceCreateGpuInstance(device, 19)
    assert session.nvmlGpuInstanceGetInfo(handle).placement.start > 0


def test_a_short_placement_array_is_too_small(session, device):
    array = (session.c_nvmlGpuInstancePlacement_t * 2)()
    count = ctypes.c_uint(2)
    call = session.nvmlDeviceGetGpuInstancePossiblePlacements
    assert code_of(session, call, device, 19, array, byref(count)) == 7
    assert count.value == 7


def test_a_placement_passed_by_value_does_not_reach_the_node(node, session, device):
    wanted = session.c_nvmlGpuInstancePlacement_t(4, 4)
    with pytest.raises(ctypes.ArgumentError):
        session.nvmlDeviceCreateGpuInstanceWithPlacement(device, 9, wanted)
    assert node.gpu(0).instances == []


def test_mig_devices_are_enumerated_with_holes(node, session, device):
    ids = [node.create_instance(0, "1g.5gb", start)[0].gi_id for start in (0, 1, 2)]
    node.destroy_instance(0, ids[1])
    assert session.nvmlDeviceGetMaxMigDeviceCount(device) == 7
    by_index = session.nvmlDeviceGetMigDeviceHandleByIndex
    assert session.nvmlDeviceGetGpuInstanceId(by_index(device, 0)) == ids[0]
    assert code_of(session, by_index, device, 1) == 6
    assert session.nvmlDeviceGetGpuInstanceId(by_index(device, 2)) == ids[2]
    assert code_of(session, by_index, device, 7) == 2


def test_a_mig_device_describes_itself_and_its_parent(node, session, device):
    _, compute = node.create_instance(1, "1g.20gb", 2)
    parent = session.nvmlDeviceGetHandleByIndex(1)
    mig = session.nvmlDeviceGetHandleByUUID(compute.mig_uuid)
    assert session.nvmlDeviceIsMigDeviceHandle(mig).value == 1
    assert session.nvmlDeviceIsMigDeviceHandle(parent).value == 0
    assert session.nvmlDeviceGetName(mig) == "NVIDIA H100 80GB HBM3 MIG 1g.20gb"
    assert session.nvmlDeviceGetComputeInstanceId(mig) == compute.ci_id
    above = session.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig)
    assert session.nvmlDeviceGetUUID(above) == session.nvmlDeviceGetUUID(parent)
    figures = session.nvmlDeviceGetAttributes(mig)
    assert (figures.multiprocessorCount, figures.memorySizeMB) == (26, 20096)
    assert (figures.gpuInstanceSliceCount, figures.computeInstanceSliceCount) == (1, 1)


def test_attributes_and_events_are_asked_of_the_right_kind_of_device(node, session, device):
    _, compute = node.create_instance(0, "1g.5gb", 0)
    mig = session.nvmlDeviceGetHandleByUUID(compute.mig_uuid)
    events = session.nvmlEventSetCreate()
    assert code_of(session, session.nvmlDeviceGetAttributes, device) == 3
    assert code_of(session, session.nvmlDeviceRegisterEvents, mig, 8, events) == 3
    assert code_of(session, session.nvmlDeviceGetMinorNumber, mig) == 2


def test_the_old_uuid_format_is_understood(node, session):
    instance, compute = node.create_instance(0, "1g.5gb", 0)
    legacy = f"MIG-{node.gpu(0).uuid}/{instance.gi_id}/{compute.ci_id}"
    assert session.nvmlDeviceGetUUID(session.nvmlDeviceGetHandleByUUID(legacy)) == compute.mig_uuid


def test_old_drivers_report_the_old_uuid_format(node):
    node.set_options(uuids="legacy")
    instance, compute = node.create_instance(0, "1g.5gb", 0)
    assert compute.mig_uuid == f"MIG-{node.gpu(0).uuid}/{instance.gi_id}/{compute.ci_id}"


def test_the_uuid_of_a_destroyed_device_is_not_found(node, session):
    instance, compute = node.create_instance(0, "1g.5gb", 0)
    node.destroy_instance(0, instance.gi_id)
    assert code_of(session, session.nvmlDeviceGetHandleByUUID, compute.mig_uuid) == 6


def test_a_dead_handle_is_refused_until_its_ids_are_used_again(node, session, device):
    instance, _ = node.create_instance(0, "2g.10gb", 0, compute=False)
    handle = session.nvmlDeviceGetGpuInstanceById(device, instance.gi_id)
    node.destroy_instance(0, instance.gi_id)
    assert code_of(session, session.nvmlGpuInstanceGetInfo, handle) == 2
    node.create_instance(0, "1g.10gb", 0, compute=False)
    assert session.nvmlGpuInstanceGetInfo(handle).profileId == 15


def test_a_parent_handle_goes_stale_at_a_reset_where_that_is_set(node, session, device):
    node.reset(0)
    assert session.nvmlDeviceGetIndex(device) == 0
    node.set_options(stale_parent_handles=True)
    assert code_of(session, session.nvmlDeviceGetIndex, device) == 2
    assert session.nvmlDeviceGetIndex(session.nvmlDeviceGetHandleByIndex(0)) == 0


def test_compute_instances_share_a_gpu_instance(node, session, device):
    node.create_instance(0, "3g.20gb", 0, compute=False)
    handle = session.nvmlDeviceGetGpuInstanceById(device, 1)
    assert session.nvmlGpuInstanceGetComputeInstanceRemainingCapacity(handle, 0) == 3
    made = [session.nvmlGpuInstanceCreateComputeInstance(handle, 0) for _ in range(3)]
    infos = [session.nvmlComputeInstanceGetInfo_v2(each) for each in made]
    assert [(each.id, each.placement.start) for each in infos] == [(0, 0), (1, 1), (2, 2)]
    assert session.nvmlDeviceGetName(infos[1].device).endswith("MIG 1c.3g.20gb")
    assert session.nvmlGpuInstanceGetComputeInstanceRemainingCapacity(handle, 0) == 0
    session.nvmlComputeInstanceDestroy(made[1])
    again = session.nvmlGpuInstanceCreateComputeInstance(handle, 0)
    assert session.nvmlComputeInstanceGetInfo_v2(again).id == 1


def test_a_compute_instance_can_be_placed(node, session, device):
    node.create_instance(0, "3g.20gb", 0, compute=False)
    handle = session.nvmlDeviceGetGpuInstanceById(device, 1)
    create = session.nvmlGpuInstanceCreateComputeInstanceWithPlacement
    at_two = byref(session.c_nvmlComputeInstancePlacement_t(2, 1))
    info = session.nvmlComputeInstanceGetInfo_v2(create(handle, 0, at_two))
    assert (info.placement.start, info.placement.size) == (2, 1)
    assert code_of(session, create, handle, 0, at_two) == 23
    too_far = byref(session.c_nvmlComputeInstancePlacement_t(3, 1))
    assert code_of(session, create, handle, 0, too_far) == 2


def test_a_compute_profile_that_the_instance_lacks_is_unsupported(node, session, device):
    node.create_instance(0, "1g.5gb", 0, compute=False)
    handle = session.nvmlDeviceGetGpuInstanceById(device, 7)
    call = session.nvmlGpuInstanceGetComputeInstanceProfileInfo
    assert call(handle, 0, 0).name == "MIG 1g.5gb"
    assert code_of(session, call, handle, 1, 0) == 3
    assert code_of(session, call, handle, 7, 0) == 3
    assert code_of(session, call, handle, 9, 0) == 2


def test_memory_of_a_mig_device_is_its_gpu_instance(node, session, device):
    instance, compute = node.create_instance(0, "2g.10gb", 0)
    node.attach(0, instance.gi_id, 0, memory_mib=1000)
    mig = session.nvmlDeviceGetHandleByUUID(compute.mig_uuid)
    own = session.nvmlDeviceGetMemoryInfo(mig)
    assert own.total == 9984 * MIB
    assert 1000 * MIB < own.used < 1100 * MIB
    assert own.free == own.total - own.used
    whole = session.nvmlDeviceGetMemoryInfo(device, version=session.nvmlMemory_v2)
    assert (whole.total, whole.used) == (40960 * MIB, 1000 * MIB)
    assert whole.reserved > 0


def test_only_root_sees_the_sum_over_all_instances(node, session, device):
    _, compute = node.create_instance(0, "1g.5gb", 0)
    node.set_options(permission="user")
    assert code_of(session, session.nvmlDeviceGetMemoryInfo, device) == 4
    assert code_of(session, session.nvmlDeviceGetComputeRunningProcesses_v3, device) == 4
    mig = session.nvmlDeviceGetHandleByUUID(compute.mig_uuid)
    assert session.nvmlDeviceGetMemoryInfo(mig).total == 4864 * MIB
    assert session.nvmlDeviceGetComputeRunningProcesses_v3(mig) == []


def test_a_container_without_the_capability_sees_no_mig_devices(node, session, device):
    node.create_instance(0, "1g.5gb", 0)
    assert session.nvmlDeviceGetMigDeviceHandleByIndex(device, 0)
    node.set_options(permission="container")
    assert code_of(session, session.nvmlDeviceGetMigDeviceHandleByIndex, device, 0) == 6


def test_utilization_is_there_without_mig_only(node, session, device):
    assert code_of(session, session.nvmlDeviceGetUtilizationRates, device) == 3
    node.set_mig_mode(0, enabled=False)
    assert session.nvmlDeviceGetUtilizationRates(device).gpu == 0


def test_latency_delays_a_call(node, session, device):
    node.add_fault(Fault("nvmlDeviceGetName", latency_s=0.05))
    seconds, _ = timed(session.nvmlDeviceGetName, device)
    assert seconds >= 0.05


def test_a_read_takes_well_under_a_millisecond(session, device):
    seconds, _ = timed(lambda: [session.nvmlDeviceGetMigMode(device) for _ in range(200)])
    assert seconds / 200 < 0.001


def timed(call, *arguments):
    start = time.monotonic()
    result = call(*arguments)
    return time.monotonic() - start, result


def null(kind):
    return None if kind in (ctypes.c_void_p, ctypes.c_char_p) else 0


@pytest.mark.parametrize("name", sorted(set(SYMBOLS) - set(SESSION_FUNCTIONS) - {"nvmlShutdown"}))
def test_null_pointers_are_refused_and_crash_nothing(session, name):
    function = session._nvmlGetFunctionPointer(name)
    assert function(*(null(kind) for kind in SYMBOLS[name].arguments)) == 2


def test_an_error_inside_the_simulator_is_unknown_and_logged(session, device, monkeypatch, caplog):
    monkeypatch.setattr(mutations, "create_gpu_instance", lambda *_: 1 / 0)
    assert code_of(session, session.nvmlDeviceCreateGpuInstance, device, 19) == 999
    assert "ZeroDivisionError" in caplog.text


def test_a_gpu_tells_its_capability_and_how_it_is_attached(node, session, device):
    assert session.nvmlDeviceGetCudaComputeCapability(device) == (8, 0)
    assert session.nvmlDeviceGetVirtualizationMode(device) == 0
    assert session.nvmlDeviceGetPersistenceMode(device) == 0
    node.set_client(0)
    assert session.nvmlDeviceGetPersistenceMode(device) == 1


def test_a_mig_device_has_no_persistence_mode(node, session):
    _, compute = node.create_instance(0, "1g.5gb", 0)
    mig = session.nvmlDeviceGetHandleByUUID(compute.mig_uuid)
    assert code_of(session, session.nvmlDeviceGetPersistenceMode, mig) == 3


def test_a_uuid_of_neither_kind_is_invalid(session):
    assert code_of(session, session.nvmlDeviceGetHandleByUUID, "CPU-1") == 2


def test_a_field_that_is_not_known_has_a_code_of_its_own(node, session, device):
    node.set_recovery_action(0, "drain-p2p")
    asked = [session.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, session.NVML_FI_DEV_RESET_STATUS]
    action, status = session.nvmlDeviceGetFieldValues(device, asked)
    assert (action.nvmlReturn, action.value.uiVal) == (
        0,
        session.NVML_GPU_RECOVERY_ACTION_DRAIN_P2P,
    )
    assert action.valueType == session.NVML_VALUE_TYPE_UNSIGNED_INT
    assert status.nvmlReturn == session.NVML_ERROR_NOT_SUPPORTED


def test_an_index_past_the_last_gpu_is_invalid(session):
    assert code_of(session, session.nvmlDeviceGetHandleByIndex, 2) == 2


def test_a_text_buffer_that_is_too_short_is_refused(session, device):
    function = session._nvmlGetFunctionPointer("nvmlDeviceGetName")
    assert function(device, ctypes.create_string_buffer(8), 8) == 7


def test_mig_devices_need_mig(node, session, device):
    node.set_mig_mode(0, enabled=False)
    assert session.nvmlDeviceGetMaxMigDeviceCount(device) == 0
    assert code_of(session, session.nvmlDeviceGetMigDeviceHandleByIndex, device, 0) == 3


def test_places_for_compute_instances_are_listed(node, session, device):
    node.create_instance(0, "4g.20gb", 0, compute=False)
    handle = session.nvmlDeviceGetGpuInstanceById(device, 1)
    array, count = (session.c_nvmlComputeInstancePlacement_t * 8)(), ctypes.c_uint(8)
    session.nvmlGpuInstanceGetComputeInstancePossiblePlacements(handle, 1, array, byref(count))
    assert [(each.start, each.size) for each in array[: count.value]] == [(0, 2), (2, 2)]
