{{/* One release a cluster: driver name, class and sockets exist once. */}}
{{- define "casaba.onlyRelease" -}}
{{- $name := include "casaba.driver" . }}
{{- with lookup "resource.k8s.io/v1" "DeviceClass" "" $name }}
{{- $annotations := .metadata.annotations | default dict }}
{{- $release := get $annotations "meta.helm.sh/release-name" }}
{{- $namespace := get $annotations "meta.helm.sh/release-namespace" }}
{{- if not $release }}
{{- fail (printf "DeviceClass %s is there already and belongs to no Helm release: if it was applied by hand, remove it with `kubectl delete deviceclass %s` and install again" $name $name) }}
{{- else if or (ne $release $.Release.Name) (ne $namespace $.Release.Namespace) }}
{{- fail (printf "this cluster already has the release %s in namespace %s, and driver name, class and sockets exist once per cluster: upgrade that one, or remove it with `helm uninstall %s -n %s` first" $release $namespace $release $namespace) }}
{{- end }}
{{- end }}
{{- end }}
