{{/* The Pod of the set-up Job and its CronJob. */}}
{{- define "hami.setupPod" -}}
metadata:
  labels: {{- include "hami.labels" (dict "root" . "component" "setup") | nindent 4 }}
spec:
  serviceAccountName: hami-setup
  restartPolicy: OnFailure
  {{- include "hami.pullSecrets" . | nindent 2 }}
  {{- include "hami.podSecurity" . | nindent 2 }}
  containers:
  - name: setup
    image: {{ include "hami.image" (dict "root" . "image" .Values.image "own" true) | quote }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    command: [hami-web, setup]
    args:
    {{- if and .Values.signingKeys.enabled (not .Values.signingKeys.existingSecret) }}
    - --signing-keys
    {{- end }}
    {{- if not .Values.secretKey.existingSecret }}
    - --secret-key
    {{- end }}
    {{- if and .Values.admin.enabled (not .Values.admin.existingSecret) }}
    - --admin
    {{- end }}
    {{- if and .Values.scheduler.patch.enabled (not .Values.scheduler.certManager.enabled) }}
    - --certificate
    {{- if .Values.scheduler.admissionWebhook.enabled }}
    - --webhook
    {{- end }}
    {{- end }}
    {{- include "hami.containerSecurity" . | nindent 4 }}
    env:
    - {name: DJANGO_SETTINGS_MODULE, value: hami_web.settings}
    - {name: HAMI_ROLE, value: EXTENDER}
    - {name: HAMI_NAMESPACE, value: {{ .Release.Namespace | quote }}}
    {{- include "hami.logEnv" . | indent 4 }}
    resources: {{- toYaml .Values.setup.resources | nindent 6 }}
    volumeMounts:
    - {name: tmp, mountPath: /tmp}
  volumes:
  - name: tmp
    emptyDir: {}
{{- end }}
