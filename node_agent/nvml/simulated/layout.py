"""Structures of nvml.h that the simulated library reads and writes in the caller's memory."""

from __future__ import annotations

import ctypes
from ctypes import c_char, c_uint, c_ulonglong, c_void_p

NAME_LENGTH = 96
BUS_ID_LEGACY_LENGTH = 16
BUS_ID_LENGTH = 32
ANY_INSTANCE = 0xFFFFFFFF


class Placement(ctypes.Structure):
    """``nvmlGpuInstancePlacement_t`` and ``nvmlComputeInstancePlacement_t``."""

    _fields_ = [("start", c_uint), ("size", c_uint)]


class GpuInstanceProfile(ctypes.Structure):
    """``nvmlGpuInstanceProfileInfo_t``, the first version: no name."""

    _fields_ = [
        ("id", c_uint),
        ("isP2pSupported", c_uint),
        ("sliceCount", c_uint),
        ("instanceCount", c_uint),
        ("multiprocessorCount", c_uint),
        ("copyEngineCount", c_uint),
        ("decoderCount", c_uint),
        ("encoderCount", c_uint),
        ("jpegCount", c_uint),
        ("ofaCount", c_uint),
        ("memorySizeMB", c_ulonglong),
    ]


class GpuInstanceProfileV2(ctypes.Structure):
    """``nvmlGpuInstanceProfileInfo_v2_t``."""

    _fields_ = [
        ("version", c_uint),
        ("id", c_uint),
        ("isP2pSupported", c_uint),
        ("sliceCount", c_uint),
        ("instanceCount", c_uint),
        ("multiprocessorCount", c_uint),
        ("copyEngineCount", c_uint),
        ("decoderCount", c_uint),
        ("encoderCount", c_uint),
        ("jpegCount", c_uint),
        ("ofaCount", c_uint),
        ("memorySizeMB", c_ulonglong),
        ("name", c_char * NAME_LENGTH),
    ]


class ComputeInstanceProfile(ctypes.Structure):
    """``nvmlComputeInstanceProfileInfo_t``, the first version: no name."""

    _fields_ = [
        ("id", c_uint),
        ("sliceCount", c_uint),
        ("instanceCount", c_uint),
        ("multiprocessorCount", c_uint),
        ("sharedCopyEngineCount", c_uint),
        ("sharedDecoderCount", c_uint),
        ("sharedEncoderCount", c_uint),
        ("sharedJpegCount", c_uint),
        ("sharedOfaCount", c_uint),
    ]


class ComputeInstanceProfileV2(ctypes.Structure):
    """``nvmlComputeInstanceProfileInfo_v2_t``."""

    _fields_ = [
        ("version", c_uint),
        ("id", c_uint),
        ("sliceCount", c_uint),
        ("instanceCount", c_uint),
        ("multiprocessorCount", c_uint),
        ("sharedCopyEngineCount", c_uint),
        ("sharedDecoderCount", c_uint),
        ("sharedEncoderCount", c_uint),
        ("sharedJpegCount", c_uint),
        ("sharedOfaCount", c_uint),
        ("name", c_char * NAME_LENGTH),
    ]


class GpuInstanceInfo(ctypes.Structure):
    """``nvmlGpuInstanceInfo_t``."""

    _fields_ = [
        ("device", c_void_p),
        ("id", c_uint),
        ("profileId", c_uint),
        ("placement", Placement),
    ]


class ComputeInstanceInfo(ctypes.Structure):
    """``nvmlComputeInstanceInfo_t``; ``device`` is the MIG device handle."""

    _fields_ = [
        ("device", c_void_p),
        ("gpuInstance", c_void_p),
        ("id", c_uint),
        ("profileId", c_uint),
        ("placement", Placement),
    ]


class DeviceAttributes(ctypes.Structure):
    """``nvmlDeviceAttributes_t``."""

    _fields_ = [
        ("multiprocessorCount", c_uint),
        ("sharedCopyEngineCount", c_uint),
        ("sharedDecoderCount", c_uint),
        ("sharedEncoderCount", c_uint),
        ("sharedJpegCount", c_uint),
        ("sharedOfaCount", c_uint),
        ("gpuInstanceSliceCount", c_uint),
        ("computeInstanceSliceCount", c_uint),
        ("memorySizeMB", c_ulonglong),
    ]


class Memory(ctypes.Structure):
    """``nvmlMemory_t``, bytes."""

    _fields_ = [("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong)]


class MemoryV2(ctypes.Structure):
    """``nvmlMemory_v2_t``, bytes."""

    _fields_ = [
        ("version", c_uint),
        ("total", c_ulonglong),
        ("reserved", c_ulonglong),
        ("free", c_ulonglong),
        ("used", c_ulonglong),
    ]


class ProcessInfo(ctypes.Structure):
    """``nvmlProcessInfo_v2_t``, which the ``_v3`` calls fill."""

    _fields_ = [
        ("pid", c_uint),
        ("usedGpuMemory", c_ulonglong),
        ("gpuInstanceId", c_uint),
        ("computeInstanceId", c_uint),
    ]


class PciInfo(ctypes.Structure):
    """``nvmlPciInfo_t``."""

    _fields_ = [
        ("busIdLegacy", c_char * BUS_ID_LEGACY_LENGTH),
        ("domain", c_uint),
        ("bus", c_uint),
        ("device", c_uint),
        ("pciDeviceId", c_uint),
        ("pciSubSystemId", c_uint),
        ("busId", c_char * BUS_ID_LENGTH),
    ]


class EventData(ctypes.Structure):
    """``nvmlEventData_t``."""

    _fields_ = [
        ("device", c_void_p),
        ("eventType", c_ulonglong),
        ("eventData", c_ulonglong),
        ("gpuInstanceId", c_uint),
        ("computeInstanceId", c_uint),
    ]


class Value(ctypes.Union):
    """``nvmlValue_t``."""

    _fields_ = [
        ("dVal", ctypes.c_double),
        ("uiVal", c_uint),
        ("ulVal", ctypes.c_ulong),
        ("ullVal", c_ulonglong),
        ("sllVal", ctypes.c_longlong),
        ("siVal", ctypes.c_int),
        ("usVal", ctypes.c_ushort),
    ]


class FieldValue(ctypes.Structure):
    """``nvmlFieldValue_t``."""

    _fields_ = [
        ("fieldId", ctypes.c_uint32),
        ("scopeId", ctypes.c_uint32),
        ("timestamp", ctypes.c_int64),
        ("latencyUsec", ctypes.c_int64),
        ("valueType", ctypes.c_int),
        ("nvmlReturn", ctypes.c_int),
        ("value", Value),
    ]


def struct_version(kind: type[ctypes.Structure], version: int) -> int:
    """The number that nvml.h's ``NVML_STRUCT_VERSION`` gives: size and version in one."""
    return ctypes.sizeof(kind) | version << 24
