"""Nodes and their agents: Allocate, instances, reclaim, what the driver says, and drift."""

from __future__ import annotations

from tests.deploy.dashboards.grafana import Dashboard, Panel, Query, Section, Text, Variable

_AGENT = '{instance=~"$agent"}'
_HERE = "$__rate_interval"


def _rate(name: str, label: str) -> tuple[Query, ...]:
    return (Query(f"sum by ({label}) (rate({name}{_AGENT}[{_HERE}]))", f"{{{{{label}}}}}"),)


def _p99(name: str, *labels: str) -> tuple[Query, ...]:
    by, legend = ", ".join((*labels, "le")), " ".join(f"{{{{{label}}}}}" for label in labels)
    rate = f"sum by ({by}) (rate({name}_bucket{_AGENT}[{_HERE}]))"
    return (Query(f"histogram_quantile(0.99, {rate})", legend),)


_HEALTH = (
    Panel(
        "stat",
        Text("Agents that answer", "可用的 agent"),
        Text("Agents that Prometheus scrapes.", "Prometheus 能抓取的 agent。"),
        (Query(f"count(hami_agent_allocate_seconds_count{_AGENT})"),),
        width=4,
        height=4,
    ),
    Panel(
        "stat",
        Text("Agents that do not serve", "不提供服务的 agent"),
        Text(
            "As the extender sees it; their nodes take no new work.",
            "由 extender 判断；其节点不接新任务。",
        ),
        (Query("count(max by (node) (hami_node_agent_dead) > 0) or vector(0)"),),
        width=4,
        height=4,
        limits=(1,),
    ),
    Panel(
        "stat",
        Text("GPUs not offered", "未提供的 GPU"),
        Text("GPUs with a problem that keeps them from taking work.", "因故障无法接任务的 GPU。"),
        (Query('sum(hami_agent_gpus{offered="false",instance=~"$agent"})'),),
        width=4,
        height=4,
        limits=(1,),
    ),
    Panel(
        "stat",
        Text("Oldest refused destroy", "最久未能销毁的实例"),
        Text("How long an instance has been refusing to go.", "实例拒绝被销毁的时长。"),
        (Query(f"max(hami_agent_oldest_reclaim_seconds{_AGENT})"),),
        unit="s",
        width=4,
        height=4,
        limits=(120, 600),
    ),
    Panel(
        "stat",
        Text("Orphan intervals", "孤儿区间"),
        Text(
            "Intervals of memory slices that no reservation explains.",
            "没有预留可解释的 memory slice 区间。",
        ),
        (Query("max(hami_mig_orphan_instances)"),),
        width=4,
        height=4,
        limits=(1,),
    ),
    Panel(
        "stat",
        Text("Oldest unrealized reservation", "最久未实现的预留"),
        Text(
            "Time since a bound Pod has waited for its instance.", "已绑定 Pod 等待其实例的时间。"
        ),
        (Query("max(hami_mig_unrealized_reservation_age_seconds)"),),
        unit="s",
        width=4,
        height=4,
        limits=(60, 300),
    ),
)

_ALLOCATE = (
    Panel(
        "timeseries",
        Text("Allocate, 99th percentile", "Allocate 的 p99"),
        Text(
            "Time of one container's Allocate, by agent.",
            "每个 agent 处理一个容器 Allocate 的时间。",
        ),
        _p99("hami_agent_allocate_seconds", "instance"),
        unit="s",
    ),
    Panel(
        "timeseries",
        Text("Allocate by outcome", "按结果统计的 Allocate"),
        Text("success, or the kind of refusal.", "success 或拒绝的种类。"),
        _rate("hami_agent_allocations_total", "outcome"),
        unit="cps",
    ),
    Panel(
        "timeseries",
        Text("Making and destroying, 99th percentile", "创建与销毁的 p99"),
        Text("Time that NVML took for one GPU instance.", "NVML 处理一个 GPU 实例的时间。"),
        _p99("hami_agent_instance_seconds", "operation"),
        unit="s",
    ),
)

_INSTANCES = (
    Panel(
        "timeseries",
        Text("Instances by state", "各状态的实例"),
        Text("foreign ones were made by someone else.", "foreign 由他方创建。"),
        (Query(f"sum by (state) (hami_agent_instances{_AGENT})", "{{state}}"),),
        stacked=True,
    ),
    Panel(
        "timeseries",
        Text("Reclaims by outcome", "按结果统计的回收"),
        Text("Instances whose Pod is over.", "其 Pod 已结束的实例。"),
        _rate("hami_agent_reclaims_total", "outcome"),
        unit="cps",
    ),
    Panel(
        "timeseries",
        Text("Passes that destroyed nothing, by doubt", "因存疑而未销毁的轮次"),
        Text(
            "Doubt preserves: nothing is destroyed on half knowledge.",
            "存疑即保留：信息不全时不销毁。",
        ),
        _rate("hami_agent_skipped_reconciliations_total", "reason"),
        unit="cps",
    ),
    Panel(
        "timeseries",
        Text("Age of the oldest refused destroy", "最久未能销毁的时长"),
        Text("By agent.", "按 agent。"),
        (Query(f"max by (instance) (hami_agent_oldest_reclaim_seconds{_AGENT})", "{{instance}}"),),
        unit="s",
        width=12,
    ),
    Panel(
        "timeseries",
        Text("Blocked memory slices by GPU", "各 GPU 被阻塞的 memory slice"),
        Text("Taken by what no reservation explains.", "被无法由预留解释的实例占用。"),
        (Query(f"max by (gpu) (hami_agent_blocked_memory_slices{_AGENT})", "{{gpu}}"),),
        width=12,
        page="/gpus/${__field.labels.gpu}",
    ),
)

_DRIVER = (
    Panel(
        "timeseries",
        Text("Problems by code", "按代码统计的问题"),
        Text("Why GPUs or whole nodes take no work.", "GPU 或整个节点不接任务的原因。"),
        (Query(f"sum by (code) (hami_agent_problems{_AGENT})", "{{code}}"),),
    ),
    Panel(
        "timeseries",
        Text("Failed NVML calls", "失败的 NVML 调用"),
        Text("By call and code of NVML.", "按调用与 NVML 错误码。"),
        (
            Query(
                f"sum by (call, code) (rate(hami_agent_nvml_errors_total{_AGENT}[{_HERE}]))",
                "{{call}} {{code}}",
            ),
        ),
        unit="cps",
    ),
    Panel(
        "timeseries",
        Text("Errors that GPUs report", "GPU 上报的错误"),
        Text("By class of their Xid.", "按 Xid 的类别。"),
        _rate("hami_agent_gpu_errors_total", "class"),
        unit="cps",
    ),
    Panel(
        "timeseries",
        Text("Registrations with the kubelet", "向 kubelet 注册"),
        Text("Each restart of a kubelet needs one.", "kubelet 每次重启都需要一次。"),
        _rate("hami_agent_kubelet_registrations_total", "outcome"),
        unit="cps",
    ),
    Panel(
        "timeseries",
        Text("Writes of the Lease", "Lease 写入"),
        Text(
            "An agent that fails to write it is soon taken for dead.",
            "写入失败的 agent 很快被视为失效。",
        ),
        _rate("hami_agent_lease_writes_total", "outcome"),
        unit="cps",
    ),
    Panel(
        "timeseries",
        Text("Writes of the node's annotations", "节点 annotation 写入"),
        Text(
            "What the GPUs can be cut into, and what is blocked.",
            "GPU 可切分的方式与被阻塞的部分。",
        ),
        _rate("hami_agent_publications_total", "outcome"),
        unit="cps",
    ),
)

_DRIFT = (
    Panel(
        "timeseries",
        Text("Open alerts by code", "按代码统计的未关闭告警"),
        Text("As the worker keeps them.", "由 worker 维护。"),
        (Query("max by (code) (hami_alerts)", "{{code}}"),),
    ),
    Panel(
        "timeseries",
        Text("Corrections of the mirror", "镜像的更正"),
        Text("What a complete comparison found wrong, by cause.", "全量比较发现的差异，按原因。"),
        (
            Query(
                "sum by (cause) (max by (cause, entity, kind) "
                "(increase(hami_mirror_corrections_total[$__rate_interval])))",
                "{{cause}}",
            ),
        ),
    ),
    Panel(
        "timeseries",
        Text("Silence of the API server", "API server 的静默"),
        Text(
            "Time since extender and worker last heard of a resource.",
            "extender 与 worker 距上次收到某资源消息的时间。",
        ),
        (
            Query(
                "max by (instance, resource) (hami_informer_silence_seconds)",
                "{{instance}} {{resource}}",
            ),
        ),
        unit="s",
    ),
    Panel(
        "table",
        Text("Reservations with a problem", "有问题的预留"),
        Text(
            "Malformed, misplaced, overlapping, altered or not trusted.",
            "格式错误、位置错误、重叠、被改动或不受信任。",
        ),
        (
            Query(
                "max by (namespace, pod, node, device_uuid, problem) (hami_mig_reservation_problem)"
            ),
        ),
        width=12,
    ),
    Panel(
        "table",
        Text("Nodes that take no new work", "不接新任务的节点"),
        Text("And why.", "及其原因。"),
        (Query("max by (node, reason) (hami_node_closed)"),),
        width=12,
    ),
)

NODES = Dashboard(
    "nodes",
    Text("HAMi MIG / Nodes and agents", "HAMi MIG / 节点与 agent"),
    Text(
        "Health of nodes and their agents: Allocate, reclaim, driver and drift.",
        "节点及其 agent 的健康状况：Allocate、回收、驱动与漂移。",
    ),
    (
        Section(Text("At a glance", "概览"), _HEALTH),
        Section(Text("Allocate", "Allocate"), _ALLOCATE),
        Section(Text("Instances and reclaim", "实例与回收"), _INSTANCES),
        Section(Text("Driver, kubelet and API server", "驱动、kubelet 与 API server"), _DRIVER),
        Section(Text("Drift", "漂移"), _DRIFT),
    ),
    (Variable("agent", Text("Agent", "agent"), "label_values(hami_agent_gpus, instance)"),),
)
