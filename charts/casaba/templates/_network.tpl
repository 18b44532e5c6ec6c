{{/* A policy for one component: `list "webhook" . (list 8443)`; the ports are open to everybody. */}}
{{- define "casaba.networkPolicy" -}}
{{- $component := index . 0 }}
{{- $open := index . 2 }}
{{- $metrics := index . 3 }}
{{- with index . 1 }}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: casaba-{{ $component }}
  namespace: {{ .Release.Namespace }}
  labels: {{- include "casaba.labels" (list $component .) | nindent 4 }}
spec:
  podSelector:
    matchLabels: {{- include "casaba.selector" (list $component) | nindent 6 }}
  policyTypes: [Ingress, Egress]
  ingress:
    {{- range $open }}
    # The API server has no labels to know it by.
    - ports: [{protocol: TCP, port: {{ . }}}]
    {{- end }}
    # Probes come from the node, which policies always let through.
    - ports: [{protocol: TCP, port: {{ $metrics }}}]
      {{- with .Values.networkPolicy.metricsFrom }}
      from: {{- toYaml . | nindent 8 }}
      {{- end }}
  egress:
    - ports:
        {{- range .Values.networkPolicy.apiServerPorts }}
        - {protocol: TCP, port: {{ . }}}
        {{- end }}
    - ports:
        - {protocol: UDP, port: 53}
        - {protocol: TCP, port: 53}
{{- end }}
{{- end }}
