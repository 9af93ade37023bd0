"""Instances and what they do: our identities joined to the series of DCGM's exporter.

Under MIG, DCGM names an instance by the UUID of its GPU and the id of the GPU instance, which is
used again when the instance is gone. Our series are always the *many* side of a join and DCGM's,
made one for each pair, the *one* side: neither a second extender, nor an exporter that is scraped
twice, nor a card that two nodes tell of can make a join fail. Means over time are taken of what was
joined at each moment, never of DCGM's series alone, or a Pod would get its predecessor's figures.
"""

from __future__ import annotations

from tests.deploy.dashboards.grafana import Dashboard, Panel, Query, Section, Text, Variable

_INSTANCE = "(device_uuid, gpu_instance_id)"
_CHOSEN = '{node=~"$node",namespace=~"$namespace"}'
_OWNERS = (
    "max by (namespace, pod, container_index, node, device_uuid, gpu_instance_id, profile) "
    f"(hami_mig_instance_pod_info{_CHOSEN})"
)
_INFO = (
    "max by (node, device_uuid, device_index, gpu_instance_id, profile, placement_start, "
    'placement_size, mig_uuid) (hami_node_gpu_mig_instance_info{node=~"$node"})'
)
_GPUS = (
    'max by (node, device_index, device_uuid) (hami_gpu_memory_limit_bytes{node=~"$node"} > bool 0)'
)
_POD = "{{namespace}}/{{pod}} {{profile}}"
_GPU = "{{node}} GPU {{device_index}}"
_MIB = "1048576"


def _of_instances(field: str) -> str:
    """One series for each GPU instance, under our names of its labels."""
    uuid = f'label_replace({field}{{GPU_I_ID!=""}}, "device_uuid", "$1", "UUID", "(.+)")'
    return (
        f'max by {_INSTANCE} (label_replace({uuid}, "gpu_instance_id", "$1", "GPU_I_ID", "(.+)"))'
    )


def _of_gpus(field: str, matcher: str = "") -> str:
    """One series for each card: under MIG the exporter repeats a card's value for its instances."""
    return (
        "max by (device_uuid) "
        f'(label_replace({field}{matcher}, "device_uuid", "$1", "UUID", "(.+)"))'
    )


def _owned(field: str) -> str:
    return f"{_OWNERS} * on {_INSTANCE} group_left () {_of_instances(field)}"


def _per_gpu(field: str, matcher: str = "") -> str:
    return f"{_GPUS} * on (device_uuid) group_left () {_of_gpus(field, matcher)}"


ACTIVE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
_ACTIVITY = (
    Panel(
        "timeseries",
        Text("Activity by Pod", "各 Pod 的活动率"),
        Text(
            "Share of time in which the instance's engines worked. The only measure of use that "
            "works under MIG.",
            "实例引擎工作时间的比例。MIG 下唯一可用的利用率指标。",
        ),
        (Query(_owned(ACTIVE), _POD),),
        unit="percentunit",
        width=12,
        top=1,
        page="/pods/${__field.labels.namespace}/${__field.labels.pod}",
    ),
    Panel(
        "timeseries",
        Text("Memory used by Pod", "各 Pod 的显存使用"),
        Text("Of the instance's own memory.", "实例自身显存的使用量。"),
        (Query(f"{_owned('DCGM_FI_DEV_FB_USED')} * {_MIB}", _POD),),
        unit="bytes",
        width=12,
        page="/pods/${__field.labels.namespace}/${__field.labels.pod}",
    ),
    Panel(
        "timeseries",
        Text("Tensor cores by Pod", "各 Pod 的 Tensor Core"),
        Text("Share of cycles in which the tensor pipe worked.", "Tensor 流水线工作的周期比例。"),
        (Query(_owned("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"), _POD),),
        unit="percentunit",
        width=12,
        top=1,
    ),
    Panel(
        "timeseries",
        Text("Memory traffic by Pod", "各 Pod 的显存带宽"),
        Text("Share of cycles in which memory sent or received.", "显存收发数据的周期比例。"),
        (Query(_owned("DCGM_FI_PROF_DRAM_ACTIVE"), _POD),),
        unit="percentunit",
        width=12,
        top=1,
    ),
)

_HALF_AN_HOUR = f"({_owned(ACTIVE)})[30m:1m]"
# A Pod that has only begun is not called idle.
_IDLE = f"avg_over_time({_HALF_AN_HOUR}) < 0.01 and count_over_time({_HALF_AN_HOUR}) >= 25"
_NOW = (
    Panel(
        "stat",
        Text("Instances", "实例"),
        Text("Realized instances.", "已实现的实例。"),
        (Query(f"count({_INFO})"),),
        width=6,
        height=4,
    ),
    Panel(
        "stat",
        Text("Mean activity", "平均活动率"),
        Text("Of all instances of the chosen namespaces.", "所选命名空间的全部实例。"),
        (Query(f"avg({_owned(ACTIVE)})"),),
        unit="percentunit",
        width=6,
        height=4,
    ),
    Panel(
        "stat",
        Text("Reserved but idle", "已预留但空闲"),
        Text(
            "Instances whose mean activity under their Pod was below 1% for half an hour.",
            "其 Pod 半小时平均活动率低于 1% 的实例。",
        ),
        (Query(f"count({_IDLE}) or vector(0)"),),
        width=6,
        height=4,
        limits=(1, 10),
    ),
    Panel(
        "stat",
        Text("Instances that DCGM does not show", "DCGM 未显示的实例"),
        Text(
            "Realized, yet without activity: the exporter is missing, or has not noticed the "
            "instance yet.",
            "已实现但没有活动数据：exporter 缺失，或尚未发现该实例。",
        ),
        (Query(f"count({_INFO} unless on {_INSTANCE} {_of_instances(ACTIVE)}) or vector(0)"),),
        width=6,
        height=4,
        limits=(1,),
    ),
    Panel(
        "table",
        Text("Instances and their activity", "实例及其活动率"),
        Text(
            "Placement as nvidia-smi writes it, start and size in memory slices.",
            "placement 与 nvidia-smi 写法一致：以 memory slice 计的起点与大小。",
        ),
        (Query(f"{_INFO} * on {_INSTANCE} group_left () {_of_instances(ACTIVE)}"),),
        unit="percentunit",
        width=24,
        height=10,
    ),
    Panel(
        "table",
        Text("Idle under their Pod", "在其 Pod 下空闲"),
        Text("Mean activity of the last half hour below 1%.", "最近半小时平均活动率低于 1%。"),
        (Query(_IDLE),),
        unit="percentunit",
        width=12,
    ),
    Panel(
        "table",
        Text("Instances that DCGM shows and nobody reserved", "DCGM 显示但无人预留的实例"),
        Text(
            "Seen by the exporter, without a realized reservation: foreign, just made, or gone.",
            "exporter 可见但没有已实现的预留：他方创建、刚创建或已消失。",
        ),
        (Query(f"{_of_instances(ACTIVE)} unless on {_INSTANCE} hami_node_gpu_mig_instance_info"),),
        unit="percentunit",
        width=12,
    ),
)

_CARDS = (
    Panel(
        "timeseries",
        Text("Activity of GPUs without MIG", "未启用 MIG 的 GPU 的活动率"),
        Text(
            "Series of the exporter that name no instance.",
            "exporter 中不含实例标签的序列。",
        ),
        (Query(_per_gpu(ACTIVE, '{GPU_I_ID=""}'), _GPU),),
        unit="percentunit",
        width=12,
        top=1,
        page="/gpus/${__field.labels.device_uuid}",
    ),
    Panel(
        "timeseries",
        Text("Power", "功耗"),
        Text(
            "Of whole cards. Under MIG the exporter repeats it for each instance: a sum over its "
            "series would count it several times.",
            "整卡功耗。MIG 下 exporter 会为每个实例重复该值：直接求和会重复计算。",
        ),
        (Query(_per_gpu("DCGM_FI_DEV_POWER_USAGE"), _GPU),),
        unit="watt",
        width=12,
    ),
    Panel(
        "timeseries",
        Text("Temperature", "温度"),
        Text("Of whole cards.", "整卡温度。"),
        (Query(_per_gpu("DCGM_FI_DEV_GPU_TEMP"), _GPU),),
        unit="celsius",
        width=12,
    ),
    Panel(
        "timeseries",
        Text("Last Xid", "最近的 Xid"),
        Text(
            "Number of the last error that the driver reported, 0 for none.",
            "驱动最近报告的错误编号，0 表示没有。",
        ),
        (Query(_per_gpu("DCGM_FI_DEV_XID_ERRORS"), _GPU),),
        width=12,
    ),
)

INSTANCES = Dashboard(
    "instances",
    Text("HAMi MIG / Instances and their use", "HAMi MIG / 实例及其使用"),
    Text(
        "What each Pod's MIG instance does: reservations joined to DCGM by GPU and GPU instance.",
        "每个 Pod 的 MIG 实例在做什么：预留按 GPU 与 GPU 实例与 DCGM 关联。",
    ),
    (
        Section(Text("Now", "当前"), _NOW),
        Section(Text("Use by Pod", "各 Pod 的使用"), _ACTIVITY),
        Section(Text("Whole cards", "整卡"), _CARDS),
    ),
    (
        Variable("node", Text("Node", "节点"), "label_values(hami_gpu_memory_limit_bytes, node)"),
        Variable(
            "namespace",
            Text("Namespace", "命名空间"),
            "label_values(hami_mig_instance_pod_info, namespace)",
        ),
    ),
)
