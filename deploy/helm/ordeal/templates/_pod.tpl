{{/* What every pod of the chart has in common. */}}

{{/* The top of a pod's spec: Pod Security "restricted", and no token, since nothing here talks to the API server. */}}
{{- define "ordeal.podSecurity" -}}
serviceAccountName: {{ include "ordeal.fullname" . }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: {{ int .Values.podSecurity.runAsUser }}
  runAsGroup: {{ int .Values.podSecurity.runAsGroup }}
  fsGroup: {{ int .Values.podSecurity.fsGroup }}
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- end -}}

{{- define "ordeal.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  runAsNonRoot: true
  capabilities:
    drop: [ALL]
{{- end -}}

{{/* Called with (dict "nodeSelector" … "tolerations" … "affinity" …). */}}
{{- define "ordeal.placement" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Holds the controller back until the chart's NATS server is ready: its Service has
     no endpoint before, so a connection that opens is proof. A controller that came
     first would exit with 2; an agent waits by itself. */}}
{{- define "ordeal.waitForNATS" -}}
{{- if .Values.nats.enabled -}}
initContainers:
  - name: wait-for-nats
    image: {{ include "ordeal.image" (list .Values.nats.image "") }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    command: [sh, -c, "until nc -z -w 2 {{ include "ordeal.fullname" . }}-nats 4222; do sleep 1; done"]
    {{- include "ordeal.containerSecurity" . | nindent 4 }}
    resources:
      requests: {cpu: 10m, memory: 16Mi}
      limits: {memory: 32Mi}
{{- end -}}
{{- end -}}
