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
{{- end }}

{{- define "casaba.controllerFlags" -}}
- --lease-name={{ include "casaba.lease" . }}
- --metrics-address=:8080
- --resource-name={{ .Values.resourceName }}
- --resource-mem={{ .Values.resourceMem }}
- --resource-cores={{ .Values.resourceCores }}
- --{{ ternary "" "no-" .Values.monitor.legacyMetrics }}legacy-metrics
{{- if eq (include "casaba.certificateMaker" . | trim) "controller" }}
{{ include "casaba.certificateFlags" . }}
- --mutating-webhooks={{ ternary (include "casaba.mutating" .) "" .Values.webhook.config.mutating.enabled }}
- --validating-webhooks={{ ternary (include "casaba.validating" .) "" .Values.webhook.config.validating.enabled }}
{{- else }}
- --no-certificates
{{- end }}
- --log-level={{ .Values.controller.logLevel }}
{{- end }}
