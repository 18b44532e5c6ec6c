{{/*
Hooks: jobs with a service account of their own that is gone when they are.
`list EVENTS WEIGHT`; Helm runs lower weights first.
*/}}
{{- define "casaba.hook" -}}
helm.sh/hook: {{ index . 0 }}
helm.sh/hook-weight: {{ index . 1 | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded,hook-failed
{{- end }}

{{/* The account of a hook and the binding to its ClusterRole or Role: `list NAME EVENTS KIND .` */}}
{{- define "casaba.hookAccount" -}}
{{- $name := index . 0 }}
{{- $events := index . 1 }}
{{- $kind := index . 2 }}
{{- with index . 3 }}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $name }}
  namespace: {{ .Release.Namespace }}
  labels: {{- include "casaba.labels" (list "hook" .) | nindent 4 }}
  annotations: {{- include "casaba.hook" (list $events -20) | nindent 4 }}
---
{{ include "casaba.hookBinding" (list $name $events $kind .) }}
{{- end }}
{{- end }}

{{- define "casaba.hookBinding" -}}
{{- $name := index . 0 }}
{{- $events := index . 1 }}
{{- $kind := index . 2 }}
{{- with index . 3 }}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: {{ $name }}
  {{- if eq $kind "Role" }}
  namespace: {{ .Release.Namespace }}
  {{- end }}
  labels: {{- include "casaba.labels" (list "hook" .) | nindent 4 }}
  annotations: {{- include "casaba.hook" (list $events -18) | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ $name }}
subjects:
  - kind: ServiceAccount
    name: {{ $name }}
    namespace: {{ .Release.Namespace }}
{{- end }}
{{- end }}

{{/* A hook's job: `dict "name" … "account" … "events" … "weight" … "args" (list …) "deadline" … "root" .` */}}
{{- define "casaba.hookJob" -}}
{{- $job := . }}
{{- with .root }}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ $job.name }}
  namespace: {{ .Release.Namespace }}
  labels: {{- include "casaba.labels" (list "hook" .) | nindent 4 }}
  annotations:
    {{- include "casaba.hook" (list $job.events $job.weight) | nindent 4 }}
    helm.sh/hook-output-log-policy: hook-succeeded,hook-failed
spec:
  backoffLimit: 0
  activeDeadlineSeconds: {{ $job.deadline }}
  template:
    metadata:
      labels: {{- include "casaba.labels" (list "hook" .) | nindent 8 }}
    spec:
      serviceAccountName: {{ $job.account | default $job.name }}
      {{- include "casaba.pullSecrets" . | nindent 6 }}
      restartPolicy: Never
      securityContext: {{- include "casaba.podSecurity" . | nindent 8 }}
      {{- with .Values.controller.nodeSelector }}
      nodeSelector: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.controller.tolerations }}
      tolerations: {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: casaba
          image: {{ include "casaba.image" (list .Values.controller.image .) }}
          imagePullPolicy: {{ .Values.controller.image.pullPolicy }}
          args: {{- toYaml $job.args | nindent 12 }}
          env: {{- include "casaba.podIdentity" . | nindent 12 }}
          securityContext: {{- include "casaba.containerSecurity" . | nindent 12 }}
          resources: {{- toYaml .Values.controller.resources | nindent 12 }}
          {{- if $job.configMap }}
          volumeMounts:
            - {name: configuration, mountPath: /etc/casaba, readOnly: true}
          {{- end }}
      {{- if $job.configMap }}
      volumes:
        - name: configuration
          configMap: {name: {{ $job.configMap }}}
      {{- end }}
{{- end }}
{{- end }}
