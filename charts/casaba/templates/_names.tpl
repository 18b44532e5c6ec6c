{{/*
Names. They are fixed, as HAMi's are: driver, class and sockets exist once in a cluster, and people
know `kubectl get ds hami-dra-driver-kubelet-plugin`. The controller bears the monitor's name, as
it does the monitor's work.
*/}}
{{- define "casaba.driver" -}}hami-core-gpu.project-hami.io{{- end }}
{{- define "casaba.agent" -}}hami-dra-driver-kubelet-plugin{{- end }}
{{- define "casaba.agentServiceAccount" -}}{{ .Values.drivers.nvidia.serviceAccount }}{{- end }}
{{- define "casaba.agentRole" -}}hami-dra-driver-clusterrole{{- end }}
{{- define "casaba.webhook" -}}hami-dra-webhook{{- end }}
{{- define "casaba.controller" -}}hami-dra-monitor{{- end }}
{{- define "casaba.mutating" -}}hami-dra-webhook{{- end }}
{{- define "casaba.validating" -}}hami-dra-webhook{{- end }}
{{- define "casaba.certificate" -}}hami-dra-webhook-serving-cert{{- end }}
{{- define "casaba.authorityCertificate" -}}hami-dra-webhook-authority{{- end }}
{{- define "casaba.servingSecret" -}}hami-dra-webhook-tls{{- end }}
{{- define "casaba.authoritySecret" -}}hami-dra-webhook-ca{{- end }}
{{- define "casaba.certManagerAuthoritySecret" -}}hami-dra-webhook-cert-manager-ca{{- end }}
{{- define "casaba.customSecret" -}}hami-dra-webhook-custom-tls{{- end }}
{{- define "casaba.lease" -}}casaba-controller{{- end }}
{{- define "casaba.doctor" -}}hami-dra-doctor{{- end }}
{{- define "casaba.certificatesJob" -}}hami-dra-certificates{{- end }}
{{- define "casaba.uninstall" -}}hami-dra-uninstall{{- end }}
{{- define "casaba.nodeCleaner" -}}hami-dra-node-cleaner{{- end }}

{{/* Labels by which a component's pods are chosen: `list "webhook" .` */}}
{{- define "casaba.selector" -}}
app.kubernetes.io/name: casaba
app.kubernetes.io/component: {{ index . 0 }}
{{- end }}

{{- define "casaba.labels" -}}
{{ include "casaba.selector" . }}
{{- with index . 1 }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}
{{- end }}

{{/* Reference of an image: `list .Values.webhook.image .` */}}
{{- define "casaba.image" -}}
{{- $image := index . 0 }}
{{- with index . 1 }}
{{- $repository := $image.repository }}
{{- if .Values.global.imageRegistry }}
{{- $repository = printf "%s/%s" (trimSuffix "/" .Values.global.imageRegistry) (regexReplaceAll "^[^/]*[.:][^/]*/" $repository "") }}
{{- end }}
{{- if eq $image.tag "latest" }}
{{- fail (printf "%s: the tag latest changes under running pods and can't be rolled back: name a version, or leave tag empty for %s" $repository .Chart.AppVersion) }}
{{- end }}
{{- printf "%s:%s" $repository ($image.tag | default .Chart.AppVersion) }}
{{- end }}
{{- end }}

{{- define "casaba.pullSecrets" -}}
{{- with .Values.global.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What a pod without any need of the host runs as. */}}
{{- define "casaba.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "casaba.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* Flags that tell agent and doctor which nodes offer their cards: those that the agents are on. */}}
{{- define "casaba.nodeLabelFlags" -}}
{{- $selector := .Values.drivers.nvidia.daemonSet.nodeSelector }}
{{- if not $selector }}
{{- fail "drivers.nvidia.daemonSet.nodeSelector is empty, and an agent would run on every node of the cluster: name a label of the nodes with cards; if every node has some, kubernetes.io/os: linux" }}
{{- end }}
{{- range $key, $value := $selector }}
- {{ printf "--node-label=%s=%s" $key $value | quote }}
{{- end }}
{{- end }}

{{/* The kubelet's --root-dir; a release of before has no such value when values are reused. */}}
{{- define "casaba.kubeletDir" -}}
{{ .Values.drivers.nvidia.kubeletDir | default "/var/lib/kubelet" }}
{{- end }}

{{/* Replicas on different nodes where that is possible: `list .Values.webhook.affinity "webhook"` */}}
{{- define "casaba.affinity" -}}
{{- if index . 0 }}
{{- toYaml (index . 0) }}
{{- else -}}
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels: {{- include "casaba.selector" (list (index . 1)) | nindent 12 }}
{{- end }}
{{- end }}

{{/* Who makes the webhook's certificate: custom, cert-manager or controller. */}}
{{- define "casaba.certificateMaker" -}}
{{- $manager := .Values.certs.certManager.enabled | toString }}
{{- if and .Values.certs.custom.crt .Values.certs.custom.key -}} custom
{{- else if or .Values.certs.custom.crt .Values.certs.custom.key -}}
{{- fail "certs.custom: crt and key come together; one of them is empty" }}
{{- else if eq $manager "true" -}} cert-manager
{{- else if and (eq $manager "auto") (.Capabilities.APIVersions.Has "cert-manager.io/v1") -}} cert-manager
{{- else -}} controller
{{- end }}
{{- end }}

{{/*
The Secret that the webhook serves. Helm's own has another name than the one that controller and
cert-manager write: Helm takes over nothing that somebody else has made.
*/}}
{{- define "casaba.mountedSecret" -}}
{{- if eq (include "casaba.certificateMaker" . | trim) "custom" -}}
{{ include "casaba.customSecret" . }}
{{- else -}}
{{ include "casaba.servingSecret" . }}
{{- end }}
{{- end }}

{{/*
All Secrets that may have been made, by whomever, in JSON. Helm's own may be left of an upgrade that
failed.
*/}}
{{- define "casaba.madeSecrets" -}}
{{- list (include "casaba.servingSecret" .) (include "casaba.authoritySecret" .) (include "casaba.certManagerAuthoritySecret" .) (include "casaba.customSecret" .) | toJson }}
{{- end }}

{{- define "casaba.caInjection" -}}
{{- if eq (include "casaba.certificateMaker" . | trim) "cert-manager" }}
cert-manager.io/inject-ca-from: {{ .Release.Namespace }}/{{ include "casaba.certificate" . }}
{{- end }}
{{- end }}
