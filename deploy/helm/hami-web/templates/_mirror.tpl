{{/* The init container that brings the database up to date and makes the first admin. */}}
{{- define "hami.prepare" -}}
- name: prepare
  image: {{ include "hami.image" (dict "root" . "image" .Values.image "own" true) | quote }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  command: [hami-web, prepare]
  {{- if .Values.admin.enabled }}
  args: [--admin, {{ .Values.admin.name | quote }}]
  {{- end }}
  {{- include "hami.containerSecurity" . | nindent 2 }}
  env:
  {{- include "hami.mirrorEnv" . | nindent 2 }}
  {{- if .Values.admin.enabled }}
  - {name: HAMI_ADMIN_PASSWORD_FILE, value: /etc/hami/admin/password}
  {{- end }}
  resources: {{- toYaml .Values.setup.resources | nindent 4 }}
  volumeMounts:
  {{- include "hami.mirrorMounts" . | nindent 2 }}
  {{- if .Values.admin.enabled }}
  - {name: admin, mountPath: /etc/hami/admin, readOnly: true}
  {{- end }}
{{- end }}

{{- define "hami.adminVolume" -}}
{{- if .Values.admin.enabled }}
- name: admin
  secret: {secretName: {{ include "hami.adminSecret" . }}, defaultMode: 0440}
{{- end }}
{{- end }}

{{- define "hami.webContainer" -}}
- name: web
  image: {{ include "hami.image" (dict "root" . "image" .Values.image "own" true) | quote }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  command: [hami-web, web]
  {{- include "hami.containerSecurity" . | nindent 2 }}
  env:
  {{- include "hami.mirrorEnv" . | nindent 2 }}
  - {name: HAMI_WEB_LISTEN, value: "0.0.0.0:8000"}
  - {name: HAMI_METRICS_LISTEN, value: "0.0.0.0:{{ .Values.web.metricsPort }}"}
  {{- $names := list "127.0.0.1" "localhost" "hami-web" (printf "hami-web.%s" .Release.Namespace) (printf "hami-web.%s.svc" .Release.Namespace) }}
  # Probes ask by the Pod's address.
  - name: POD_IP
    valueFrom: {fieldRef: {fieldPath: status.podIP}}
  - {name: HAMI_ALLOWED_HOSTS, value: "{{ join "," (concat $names .Values.web.hosts) }},$(POD_IP)"}
  - {name: HAMI_WEB_HTTPS, value: {{ .Values.web.https | quote }}}
  - {name: HAMI_KUBERNETES_LOGIN, value: {{ .Values.web.kubernetesLogin | quote }}}
  - {name: HAMI_LOCAL_LOGIN, value: {{ .Values.web.localLogin | quote }}}
  {{- with .Values.web.proxyAddresses }}
  - {name: HAMI_PROXY_ADDRESSES, value: {{ join "," . | quote }}}
  {{- end }}
  {{- with .Values.web.extraEnv }}{{ toYaml . | nindent 2 }}{{ end }}
  ports:
  - {name: http, containerPort: 8000, protocol: TCP}
  - {name: web-metrics, containerPort: {{ .Values.web.metricsPort }}, protocol: TCP}
  # Ready when there is a map to show and the database can be used.
  readinessProbe:
    httpGet: {path: /readyz, port: http}
    periodSeconds: 5
    timeoutSeconds: 3
  {{- if .Values.web.livenessProbe }}
  livenessProbe:
    httpGet: {path: /healthz, port: http}
    initialDelaySeconds: 20
    periodSeconds: 10
    timeoutSeconds: 5
    failureThreshold: 6
  {{- end }}
  resources: {{- toYaml .Values.web.resources | nindent 4 }}
  volumeMounts:
  {{- include "hami.mirrorMounts" . | nindent 2 }}
  {{- with .Values.web.extraVolumeMounts }}{{ toYaml . | nindent 2 }}{{ end }}
{{- end }}

{{- define "hami.workerContainer" -}}
- name: worker
  image: {{ include "hami.image" (dict "root" . "image" .Values.image "own" true) | quote }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  command: [hami-web, worker]
  {{- include "hami.containerSecurity" . | nindent 2 }}
  env:
  {{- include "hami.mirrorEnv" . | nindent 2 }}
  - {name: HAMI_EXTENDER_URL, value: "https://hami-extender.{{ .Release.Namespace }}.svc:{{ .Values.scheduler.service.httpPort }}"}
  - {name: HAMI_EXTENDER_CA, value: /etc/hami/tls/ca.crt}
  - {name: HAMI_METRICS_LISTEN, value: "0.0.0.0:{{ .Values.worker.metricsPort }}"}
  - {name: HAMI_HISTORY_DAYS, value: {{ .Values.worker.historyDays | quote }}}
  {{- with .Values.handover.image }}
  - {name: HAMI_LIFECYCLE_IMAGE, value: {{ . | quote }}}
  {{- end }}
  {{- if .Values.signingKeys.enabled }}
  - {name: HAMI_SIGNING_KEYS, value: /etc/hami/signing/signing-keys}
  {{- end }}
  {{- with .Values.worker.extraEnv }}{{ toYaml . | nindent 2 }}{{ end }}
  ports:
  - {name: worker-metrics, containerPort: {{ .Values.worker.metricsPort }}, protocol: TCP}
  # Ready when database, queue and cluster can be used. What has silently stopped inside the worker ends it by itself.
  readinessProbe:
    httpGet: {path: /readyz, port: worker-metrics}
    periodSeconds: 10
    timeoutSeconds: 5
  resources: {{- toYaml .Values.worker.resources | nindent 4 }}
  volumeMounts:
  {{- include "hami.mirrorMounts" . | nindent 2 }}
  - {name: tls-ca, mountPath: /etc/hami/tls, readOnly: true}
  {{- if .Values.signingKeys.enabled }}
  - {name: signing, mountPath: /etc/hami/signing, readOnly: true}
  {{- end }}
  {{- with .Values.worker.extraVolumeMounts }}{{ toYaml . | nindent 2 }}{{ end }}
{{- end }}

{{- define "hami.workerVolumes" -}}
- name: tls-ca
  secret:
    secretName: {{ include "hami.tlsSecret" . }}
    defaultMode: 0440
    items: [{key: ca.crt, path: ca.crt}]
{{- if .Values.signingKeys.enabled }}
- name: signing
  secret: {secretName: {{ include "hami.signingSecret" . }}, defaultMode: 0440}
{{- end }}
{{- end }}

{{/* What a Pod of web or worker has beside containers; takes {root, role, labels}. */}}
{{- define "hami.mirrorPod" -}}
{{- $role := index .root.Values .role -}}
{{- include "hami.pullSecrets" .root }}
{{ include "hami.podSecurity" .root }}
{{- with $role.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $role.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $role.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $role.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels: {{- include "hami.selector" .labels | nindent 6 }}
{{- end }}
