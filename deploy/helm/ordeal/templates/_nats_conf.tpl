{{/* The server's configuration. A word that begins with $ outside quotes is read by
     nats-server from its environment, which a Secret fills; inside quotes it is a
     subject. */}}
{{- define "ordeal.natsConf" -}}
server_name: $POD_NAME
port: 4222
http_port: 8222
max_payload: {{ .Values.nats.maxPayload }}

jetstream {
  store_dir: /data
  max_memory_store: {{ .Values.nats.jetstream.maxMemory }}
  max_file_store: {{ .Values.nats.jetstream.maxFile }}
}
{{- if .Values.nats.tls.enabled }}

tls {
  cert_file: /run/secrets/ordeal/nats-server/tls.crt
  key_file: /run/secrets/ordeal/nats-server/tls.key
  min_version: "1.3"
  {{- if .Values.nats.tls.clientSecretName }}
  ca_file: /run/secrets/ordeal/nats-server/ca.crt
  verify: true
  {{- end }}
}
{{- end }}

accounts {
  {{- include "ordeal.natsAccounts" . | nindent 2 }}
}
{{- end -}}
