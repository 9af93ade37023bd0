{{/* kube-scheduler's configuration, in the version that the cluster's kube-scheduler reads. */}}
{{- define "hami.schedulerConfig" -}}
{{- $version := include "hami.kubeVersion" . -}}
{{- $api := "v1" -}}
{{- if semverCompare "<1.22.0-0" $version }}{{ $api = "v1beta1" }}{{ else if semverCompare "<1.25.0-0" $version }}{{ $api = "v1beta2" }}{{ end -}}
# kube-scheduler for Pods with schedulerName {{ .Values.schedulerName }}.
apiVersion: kubescheduler.config.k8s.io/{{ $api }}
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: {{ .Values.scheduler.leaderElect }}
  resourceLock: leases
  resourceName: hami-scheduler
  resourceNamespace: {{ .Release.Namespace }}
# Every node is offered to the extender: sampling (the default) throws away what a good placement
# gains, and may call a cluster full that is not.
percentageOfNodesToScore: 100
profiles:
- schedulerName: {{ .Values.schedulerName }}
extenders:
{{- if gt (int .Values.scheduler.replicas) 1 }}
# The Service selects the replica that leads, which may be another one's.
- urlPrefix: https://hami-extender.{{ .Release.Namespace }}.svc:{{ .Values.scheduler.service.httpPort }}
{{- else }}
- urlPrefix: https://127.0.0.1:8443
{{- end }}
  enableHTTPS: true
  tlsConfig:
    serverName: hami-extender.{{ .Release.Namespace }}.svc
    caFile: /etc/hami/tls/ca.crt
  filterVerb: filter
  bindVerb: bind
  # Names only: whole Node objects cost about a thousand times the bytes.
  nodeCacheCapable: true
  weight: 1
  # /bind waits for its node for two thirds of this.
  httpTimeout: {{ .Values.scheduler.extenderHTTPTimeout }}s
  # A GPU Pod must not be bound past the extender when that does not answer.
  ignorable: false
  # The extender counts these; the scheduler's own arithmetic knows nothing of memory slices.
  managedResources:
  - {name: {{ .Values.resourceName }}, ignoredByScheduler: true}
  - {name: {{ .Values.resourceMem }}, ignoredByScheduler: true}
  - {name: {{ .Values.resourceMemPercentage }}, ignoredByScheduler: true}
  - {name: {{ .Values.resourceCores }}, ignoredByScheduler: true}
{{- end }}
