"""The cluster: what there is, what is taken, how scattered the rest is, and who waits."""

from __future__ import annotations

from tests.deploy.dashboards.grafana import Dashboard, Panel, Query, Section, Text, Variable

_NODE = '{node=~"$node"}'
# A standby extender shows the same cluster: each series counts once.
_MEMORY = f"max by (node, device_uuid) (hami_gpu_memory_limit_bytes{_NODE})"
_TAKEN = f"max by (node, device_uuid) (hami_gpu_memory_allocated_bytes{_NODE})"
_SCATTERED = f"max by (node, device_uuid) (hami_mig_fragmentation_ratio{_NODE})"
_FREE = f"max by (node, device_uuid, profile) (hami_mig_free_placements{_NODE})"


def _quantiles(name: str) -> tuple[Query, ...]:
    rate = f"sum by (le) (rate({name}_bucket[$__rate_interval]))"
    return tuple(
        Query(f"histogram_quantile({q}, {rate})", f"p{round(q * 100)}") for q in (0.5, 0.99)
    )


_AT_A_GLANCE = (
    Panel(
        "stat",
        Text("GPUs", "GPU"),
        Text("GPUs that agents publish.", "agent 公布的 GPU。"),
        (Query(f"count({_MEMORY})"),),
        width=4,
        height=4,
    ),
    Panel(
        "stat",
        Text("Memory reserved", "已预留显存"),
        Text(
            "Share of all GPU memory that profiles of reservations take.",
            "各预留的 profile 占全部显存的比例。",
        ),
        (Query(f"sum({_TAKEN}) / sum({_MEMORY})"),),
        unit="percentunit",
        width=4,
        height=4,
        limits=(0.8, 0.95),
    ),
    Panel(
        "stat",
        Text("Pods that wait", "等待中的 Pod"),
        Text("Pods that were refused and still wait.", "被拒绝且仍在等待的 Pod。"),
        (Query("max(hami_scheduler_waiting_pods)"),),
        width=4,
        height=4,
        limits=(1, 20),
    ),
    Panel(
        "stat",
        Text("Fragmentation", "碎片化"),
        Text(
            "Mean share of free memory slices that the largest free placement cannot use.",
            "空闲 memory slice 中最大空闲 placement 用不到的平均比例。",
        ),
        (Query(f"avg({_SCATTERED})"),),
        unit="percentunit",
        width=4,
        height=4,
        limits=(0.3, 0.6),
    ),
    Panel(
        "stat",
        Text("Nodes without new work", "不接新任务的节点"),
        Text("Nodes that are closed, for whatever reason.", "因任何原因关闭的节点。"),
        (Query(f"count(max by (node) (hami_node_closed{_NODE})) or vector(0)"),),
        width=4,
        height=4,
        limits=(1, 5),
    ),
    Panel(
        "stat",
        Text("Extenders that lead", "担任 leader 的 extender"),
        Text("One, or something is wrong.", "应为一个，否则有问题。"),
        (Query("sum(hami_leader)"),),
        width=4,
        height=4,
    ),
)

_CAPACITY = (
    Panel(
        "timeseries",
        Text("Memory of all GPUs", "全部 GPU 的显存"),
        Text("What there is, and what reservations take of it.", "总量以及其中被预留的部分。"),
        (
            Query(f"sum({_MEMORY})", Text("capacity", "总量")),
            Query(f"sum({_TAKEN})", Text("reserved", "已预留")),
        ),
        unit="bytes",
    ),
    Panel(
        "timeseries",
        Text("Memory reserved by node", "各节点已预留显存"),
        Text("Share of each node's GPU memory.", "占各节点显存的比例。"),
        (Query(f"sum by (node) ({_TAKEN}) / sum by (node) ({_MEMORY})", "{{node}}"),),
        unit="percentunit",
        top=1,
        page="/nodes/${__field.labels.node}",
    ),
    Panel(
        "timeseries",
        Text("Reservations by state", "各状态的预留"),
        Text(
            "From held by the extender to realized on the GPU; conflicted ones need a person.",
            "从 extender 持有到在 GPU 上实现；conflicted 需要人工处理。",
        ),
        (Query("max by (state) (hami_mig_reservations)", "{{state}}"),),
        stacked=True,
    ),
    Panel(
        "timeseries",
        Text("Instances that still fit, by profile", "各 profile 还能容纳的实例数"),
        Text(
            "Of one profile alone: the counts of several profiles use the same memory slices.",
            "每个 profile 单独计算：不同 profile 的数字使用相同的 memory slice。",
        ),
        (Query(f"sum by (profile) ({_FREE})", "{{profile}}"),),
        width=12,
    ),
    Panel(
        "timeseries",
        Text("Memory reserved by namespace", "各命名空间已预留显存"),
        Text("Profiles of each namespace's containers.", "各命名空间容器所占的 profile。"),
        (
            Query(
                "sum by (namespace) (max by (namespace, pod, container_index, device_uuid) "
                f"(hami_vgpu_memory_allocated_bytes{_NODE}))",
                "{{namespace}}",
            ),
        ),
        unit="bytes",
        width=12,
        stacked=True,
        page="/namespaces/${__field.labels.namespace}",
    ),
)

_FRAGMENTATION = (
    Panel(
        "timeseries",
        Text("Fragmentation by node", "各节点碎片化"),
        Text("Mean of the node's GPUs, 0 to 1.", "该节点各 GPU 的平均值，0 到 1。"),
        (Query(f"avg by (node) ({_SCATTERED})", "{{node}}"),),
        unit="percentunit",
        width=12,
        top=1,
        page="/nodes/${__field.labels.node}",
    ),
    Panel(
        "table",
        Text("Most scattered GPUs", "碎片化最严重的 GPU"),
        Text(
            "The ten whose free memory slices are of least use.",
            "空闲 memory slice 最难利用的十个。",
        ),
        (Query(f"topk(10, {_SCATTERED} > 0)"),),
        unit="percentunit",
        width=12,
    ),
)

_WAITING = (
    Panel(
        "timeseries",
        Text("Pods that wait, and those woken", "等待与被唤醒的 Pod"),
        Text(
            "A waiting Pod is woken as soon as it fits.",
            "一旦有空间，等待中的 Pod 立即被唤醒。",
        ),
        (
            Query("max(hami_scheduler_waiting_pods)", Text("waiting", "等待")),
            Query(
                "sum(increase(hami_scheduler_woken_pods_total[$__rate_interval]))",
                Text("woken", "被唤醒"),
            ),
        ),
    ),
    Panel(
        "timeseries",
        Text("Nodes refused, by reason", "按原因统计的节点拒绝"),
        Text("Each of a call's refused nodes counts.", "每次调用中每个被拒绝的节点都计数。"),
        (
            Query(
                "sum by (reason) (rate(hami_scheduler_filter_rejections_total[$__rate_interval]))",
                "{{reason}}",
            ),
        ),
        unit="cps",
    ),
    Panel(
        "timeseries",
        Text("Binding to instance", "从 Binding 到实例"),
        Text(
            "Time from a Pod's Binding to the identity of its last instance.",
            "从 Pod 的 Binding 到最后一个实例身份写入的时间。",
        ),
        _quantiles("hami_mig_realization_duration_seconds"),
        unit="s",
    ),
    Panel(
        "timeseries",
        Text("Deciding", "决策耗时"),
        Text("Time of one filter call.", "一次 filter 调用的时间。"),
        _quantiles("hami_scheduler_filter_duration_seconds"),
        unit="s",
    ),
    Panel(
        "timeseries",
        Text("Binding", "绑定耗时"),
        Text(
            "Time of one bind call, waiting for the node included.",
            "一次 bind 调用的时间，含等待节点。",
        ),
        _quantiles("hami_scheduler_bind_duration_seconds"),
        unit="s",
    ),
    Panel(
        "timeseries",
        Text("Binds that wait, by node", "各节点等待中的 bind"),
        Text("Binds for one node come one after the other.", "同一节点的 bind 依次进行。"),
        (Query(f"max by (node) (hami_scheduler_bind_queue_depth{_NODE})", "{{node}}"),),
        page="/nodes/${__field.labels.node}",
    ),
)

CLUSTER = Dashboard(
    "cluster",
    Text("HAMi MIG / Cluster", "HAMi MIG / 集群"),
    Text(
        "Capacity, reservations, fragmentation and waiting Pods of the whole cluster.",
        "整个集群的容量、预留、碎片化与等待中的 Pod。",
    ),
    (
        Section(Text("At a glance", "概览"), _AT_A_GLANCE),
        Section(Text("Capacity and use", "容量与使用"), _CAPACITY),
        Section(Text("Fragmentation", "碎片化"), _FRAGMENTATION),
        Section(Text("Waiting and deciding", "等待与决策"), _WAITING),
    ),
    (Variable("node", Text("Node", "节点"), "label_values(hami_gpu_memory_limit_bytes, node)"),),
)
