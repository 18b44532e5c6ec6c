{{- define "casaba.podIdentity" -}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: POD_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
{{- end }}

{{/* Who makes certificates for whom; the same for the controller and for the job before it. */}}
{{- define "casaba.certificateFlags" -}}
- --webhook-service={{ include "casaba.webhook" . }}
- --serving-secret={{ include "casaba.servingSecret" . }}
- --authority-secret={{ include "casaba.authoritySecret" . }}
{{ include "casaba.trustFlags" . }}
{{- end }}

{{/* The webhook configurations that are to trust somebody. */}}
{{- define "casaba.trustFlags" -}}
- --mutating-webhooks={{ ternary (include "casaba.mutating" .) "" .Values.webhook.config.mutating.enabled }}
- --validating-webhooks={{ ternary (include "casaba.validating" .) "" .Values.webhook.config.validating.enabled }}
{{- end }}

{{/* Rights to let the API server trust an authority of ours. */}}
{{- define "casaba.trustRules" -}}
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingwebhookconfigurations]
  resourceNames: [{{ include "casaba.mutating" . }}]
  verbs: [get, patch]
- apiGroups: [admissionregistration.k8s.io]
  resources: [validatingwebhookconfigurations]
  resourceNames: [{{ include "casaba.validating" . }}]
  verbs: [get, patch]
{{- end }}

{{- define "casaba.controllerFlags" -}}
- --lease-name={{ include "casaba.lease" . }}
- --metrics-address=:8080
- --resource-name={{ .Values.resourceName }}
- --resource-mem={{ .Values.resourceMem }}
- --resource-cores={{ .Values.resourceCores }}
- --{{ ternary "" "no-" .Values.monitor.legacyMetrics }}legacy-metrics
- --{{ ternary "" "no-" .Values.monitor.legacySchedulerMetrics }}legacy-scheduler-metrics
{{- $maker := include "casaba.certificateMaker" . | trim }}
{{- if eq $maker "controller" }}
{{ include "casaba.certificateFlags" . }}
{{- else }}
- --no-certificates
{{- end }}
{{- if eq $maker "custom" }}
{{- /* Not in the manifests: a server-side apply refuses a field that somebody else has written. */}}
- --trust-secret={{ include "casaba.customSecret" . }}
{{ include "casaba.trustFlags" . }}
{{- end }}
- --log-level={{ .Values.controller.logLevel }}
{{- end }}
