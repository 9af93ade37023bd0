{{/* Labels of an object; takes {root, component}. */}}
{{- define "hami.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
{{ include "hami.selector" . }}
app.kubernetes.io/part-of: hami-web
{{- with .root.Values.global.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* What selects the Pods of a component. */}}
{{- define "hami.selector" -}}
app.kubernetes.io/name: hami-web
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* The cluster's version as a semantic one without what providers add (v1.30.4-eks-1 → 1.30.4). */}}
{{- define "hami.kubeVersion" -}}
{{- regexFind "[0-9]+\\.[0-9]+\\.[0-9]+" .Capabilities.KubeVersion.Version -}}
{{- end }}

{{/* An image's name; takes {root, image, own}: own images share the product's tag. */}}
{{- define "hami.image" -}}
{{- $registry := .root.Values.global.imageRegistry | default .image.registry -}}
{{- $tag := .image.tag -}}
{{- if .own }}{{ $tag = $tag | default .root.Values.global.imageTag | default .root.Chart.AppVersion }}{{ end -}}
{{- $tag = $tag | default (printf "v%s" (include "hami.kubeVersion" .root)) -}}
{{- if $registry }}{{ $registry }}/{{ end }}{{ .image.repository }}{{ if .image.digest }}@{{ .image.digest }}{{ else }}:{{ $tag }}{{ end }}
{{- end }}

{{- define "hami.pullSecrets" -}}
{{- with .Values.global.imagePullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ if kindIs "map" . }}{{ .name }}{{ else }}{{ . }}{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The Pod's security context: nobody in particular, but for the agent. */}}
{{- define "hami.podSecurity" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "hami.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* Names of Secrets. */}}
{{- define "hami.tlsSecret" -}}
{{- if or .Values.scheduler.certManager.enabled .Values.scheduler.patch.enabled }}hami-extender-tls{{ else }}{{ .Values.scheduler.tls.existingSecret }}{{ end -}}
{{- end }}
{{- define "hami.signingSecret" -}}{{ .Values.signingKeys.existingSecret | default "hami-signing-keys" }}{{- end }}
{{- define "hami.secretKeySecret" -}}{{ .Values.secretKey.existingSecret | default "hami-secret-key" }}{{- end }}
{{- define "hami.adminSecret" -}}{{ .Values.admin.existingSecret | default "hami-admin" }}{{- end }}

{{/* Whether the API server itself can tell which Pods concern us. */}}
{{- define "hami.matchConditions" -}}
{{- if semverCompare ">=1.30.0-0" (include "hami.kubeVersion" .) }}true{{ end -}}
{{- end }}

{{- define "hami.admissionPolicy" -}}
{{- $wanted := toString .Values.devicePlugin.admissionPolicy -}}
{{- if and .Values.devicePlugin.enabled (or (eq $wanted "true") (and (eq $wanted "auto") (include "hami.matchConditions" .))) }}true{{ end -}}
{{- end }}

{{/* How every role of the control plane writes its lines. */}}
{{- define "hami.logEnv" }}
- {name: HAMI_LOG_LEVEL, value: {{ .Values.logLevel | quote }}}
- {name: HAMI_LOG_FORMAT, value: {{ .Values.logFormat | quote }}}
{{- with .Values.tracing.endpoint }}
- {name: OTEL_EXPORTER_OTLP_ENDPOINT, value: {{ . | quote }}}
{{- end }}
{{- end }}

{{/* What web and worker share of their environment. */}}
{{- define "hami.mirrorEnv" -}}
- {name: DJANGO_SETTINGS_MODULE, value: hami_web.settings}
- {name: HAMI_NAMESPACE, value: {{ .Release.Namespace | quote }}}
- {name: HAMI_SCHEDULER_NAME, value: {{ .Values.schedulerName | quote }}}
{{- include "hami.logEnv" . }}
- {name: HAMI_POLICY_FILE, value: /etc/hami/policy/policy.yaml}
- {name: HAMI_SECRET_KEY_FILE, value: /etc/hami/secret-key/secret-key}
- {name: HAMI_DATA_DIR, value: /var/lib/hami}
{{- if eq .Values.database.kind "postgresql" }}
- {name: HAMI_DATABASE_URL_FILE, value: /etc/hami/database/{{ .Values.database.key }}}
{{- else }}
- {name: HAMI_DATABASE_URL, value: "sqlite:////var/lib/hami/hami.sqlite3"}
{{- end }}
{{- if eq .Values.broker.kind "redis" }}
- {name: HAMI_BROKER_URL_FILE, value: /etc/hami/broker/{{ .Values.broker.key }}}
{{- end }}
{{- end }}

{{/* A volume that is kept and one that is not have names of their own: merged, one would have two sources. */}}
{{- define "hami.dataVolume" -}}
{{- if and (eq .Values.database.kind "sqlite") .Values.persistence.enabled }}data{{ else }}scratch{{ end -}}
{{- end }}

{{- define "hami.mirrorMounts" -}}
- {name: policy, mountPath: /etc/hami/policy, readOnly: true}
- {name: secret-key, mountPath: /etc/hami/secret-key, readOnly: true}
- {name: {{ include "hami.dataVolume" . }}, mountPath: /var/lib/hami}
- {name: tmp, mountPath: /tmp}
{{- if eq .Values.database.kind "postgresql" }}
- {name: database, mountPath: /etc/hami/database, readOnly: true}
{{- end }}
{{- if eq .Values.broker.kind "redis" }}
- {name: broker, mountPath: /etc/hami/broker, readOnly: true}
{{- end }}
{{- end }}

{{- define "hami.mirrorVolumes" -}}
- name: policy
  configMap: {name: hami-policy}
- name: secret-key
  secret: {secretName: {{ include "hami.secretKeySecret" . }}, defaultMode: 0440}
- name: tmp
  emptyDir: {}
- name: {{ include "hami.dataVolume" . }}
{{- if eq (include "hami.dataVolume" .) "data" }}
  persistentVolumeClaim: {claimName: {{ .Values.persistence.existingClaim | default "hami-data" }}}
{{- else }}
  emptyDir: {}
{{- end }}
{{- if eq .Values.database.kind "postgresql" }}
- name: database
  secret: {secretName: {{ .Values.database.existingSecret }}, defaultMode: 0440}
{{- end }}
{{- if eq .Values.broker.kind "redis" }}
- name: broker
  secret: {secretName: {{ .Values.broker.existingSecret }}, defaultMode: 0440}
{{- end }}
{{- end }}
