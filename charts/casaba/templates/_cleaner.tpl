{{/*
The DaemonSet by which the uninstall job removes our files from the nodes: its pods clean first and
are ready when they have. The folders above ours are mounted, or ours would be left, empty.
*/}}
{{- define "casaba.cleaner" -}}
{{- $kubelet := include "casaba.kubeletDir" . }}
{{- $elsewhere := not (hasPrefix "/var/lib/" $kubelet) }}
{{- with .Values.drivers.nvidia }}
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: {{ include "casaba.nodeCleaner" $ }}
  namespace: {{ $.Release.Namespace }}
  labels: {{- include "casaba.labels" (list "node-cleaner" $) | nindent 4 }}
spec:
  selector:
    matchLabels: {{- include "casaba.selector" (list "node-cleaner") | nindent 6 }}
  template:
    metadata:
      labels: {{- include "casaba.labels" (list "node-cleaner" $) | nindent 8 }}
    spec:
      automountServiceAccountToken: false
      {{- include "casaba.pullSecrets" $ | nindent 6 }}
      priorityClassName: {{ .daemonSet.priorityClassName }}
      {{- if $.Values.uninstall.allNodes }}
      nodeSelector:
        kubernetes.io/os: linux
      tolerations: [{operator: Exists}]
      {{- else }}
      nodeSelector: {{- toYaml .daemonSet.nodeSelector | nindent 8 }}
      tolerations: {{- toYaml .daemonSet.tolerations | nindent 8 }}
      affinity: {{- toYaml .daemonSet.affinity | nindent 8 }}
      {{- end }}
      terminationGracePeriodSeconds: 1
      initContainers:
        - name: clean
          image: {{ include "casaba.image" (list .image $) }}
          imagePullPolicy: {{ .image.pullPolicy }}
          args:
            - node-clean
            - --host-root=/host
            - --kubelet-dir={{ $kubelet }}
            {{- if $.Values.uninstall.force }}
            - --force
            {{- end }}
          # Tells the uninstall why a node is not clean.
          terminationMessagePolicy: FallbackToLogsOnError
          securityContext:
            # Folders below ours may have been made by others, with other modes.
            runAsUser: 0
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {drop: [ALL], add: [DAC_OVERRIDE]}
          volumeMounts:
            - {name: run, mountPath: /host/run}
            - {name: lib, mountPath: /host/var/lib}
            - {name: cdi, mountPath: /host/var/run/cdi}
            {{- if $elsewhere }}
            - {name: kubelet, mountPath: /host{{ $kubelet }}}
            {{- end }}
      containers:
        - name: done
          image: {{ include "casaba.image" (list .image $) }}
          imagePullPolicy: {{ .image.pullPolicy }}
          command: [sleep, infinity]
          securityContext:
            runAsNonRoot: true
            runAsUser: 65532
            {{- include "casaba.containerSecurity" $ | nindent 12 }}
      volumes:
        - {name: run, hostPath: {path: /run, type: Directory}}
        - {name: lib, hostPath: {path: /var/lib, type: Directory}}
        - {name: cdi, hostPath: {path: /var/run/cdi, type: DirectoryOrCreate}}
        {{- if $elsewhere }}
        - {name: kubelet, hostPath: {path: {{ $kubelet }}, type: DirectoryOrCreate}}
        {{- end }}
{{- end }}
{{- end }}
