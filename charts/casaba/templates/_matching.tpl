{{/*
Conditions by which the API server leaves everything else alone. Nothing that a pod or claim can
hold makes them fail: a failing condition would count as an outage of the webhook. What the API
server does not leave out when it is empty is null: the containers of a pod.
*/}}

{{/* A CEL list of the classic resources. */}}
{{- define "casaba.resources" -}}
{{- $names := list }}
{{- range list .Values.resourceName .Values.resourceMem .Values.resourceMemPercentage .Values.resourceCores .Values.resourcePriority }}
{{- $names = append $names (printf "'%s'" .) }}
{{- end }}
{{- if ne (len $names) (len (uniq $names)) }}
{{- fail (printf "two of resourceName, resourceMem, resourceMemPercentage, resourceCores and resourcePriority are the same: %s" (join ", " $names)) }}
{{- end }}
{{- printf "[%s]" (join ", " $names) }}
{{- end }}

{{/* Whether one of them is in what the CEL expression names: limits or requests of a container. */}}
{{- define "casaba.names" -}}
has({{ index . 0 }}.resources) && {{ index . 1 }}.exists(r, (has({{ index . 0 }}.resources.limits) && r in {{ index . 0 }}.resources.limits) || (has({{ index . 0 }}.resources.requests) && r in {{ index . 0 }}.resources.requests))
{{- end }}

{{- define "casaba.podMatches" -}}
{{- $resources := include "casaba.resources" . -}}
(has(object.spec.containers) && object.spec.containers != null && object.spec.containers.exists(c, {{ include "casaba.names" (list "c" $resources) }})) ||
(has(object.spec.initContainers) && object.spec.initContainers.exists(c, {{ include "casaba.names" (list "c" $resources) }})) ||
({{ include "casaba.names" (list "object.spec" $resources) }})
{{- end }}

{{- define "casaba.claimMatches" -}}
{{- $driver := include "casaba.driver" . -}}
[request.resource.resource == 'resourceclaims' ? object.spec : object.spec.spec].exists(s, has(s.devices) && (
  (has(s.devices.requests) && s.devices.requests.exists(r,
    (has(r.exactly) && r.exactly.deviceClassName == '{{ $driver }}') ||
    (has(r.firstAvailable) && r.firstAvailable.exists(a, a.deviceClassName == '{{ $driver }}')))) ||
  (has(s.devices.config) && s.devices.config.exists(c, has(c.opaque) && c.opaque.driver == '{{ $driver }}'))))
{{- end }}

{{/* Namespaces that are looked at. */}}
{{- define "casaba.namespaces" -}}
matchExpressions:
  - {key: hami.io/webhook, operator: NotIn, values: [ignore]}
{{- with .Values.webhook.config.scope }}
{{- $excluded := .excludedNamespaces | default list }}
{{- if .excludeReleaseNamespace }}
{{- $excluded = append $excluded $.Release.Namespace }}
{{- end }}
{{- if and .enabled $excluded }}
  - key: kubernetes.io/metadata.name
    operator: NotIn
    values: {{- $excluded | uniq | toYaml | nindent 6 }}
{{- end }}
{{- end }}
{{- end }}
