{{/* How a pod logs in to NATS: flags, environment, volumes. Called with
     (list . "agent") or (list . "controller"). A password or a token is an
     environment variable that the flag refers to, creds and nkeys are files; no
     flag holds a secret, so none shows in a process list or a pod's manifest. */}}

{{- define "ordeal.natsSecret" -}}
{{- default (printf "%s-nats" (include "ordeal.fullname" .)) .Values.nats.auth.secretName -}}
{{- end -}}

{{- define "ordeal.natsURL" -}}
{{- if .Values.nats.enabled -}}
{{ ternary "tls" "nats" .Values.nats.tls.enabled }}://{{ include "ordeal.fullname" . }}-nats:4222
{{- else -}}
{{- required "nats.url: say where the server is, since nats.enabled is false" .Values.nats.url -}}
{{- end -}}
{{- end -}}

{{- define "ordeal.natsArgs" -}}
{{- $root := index . 0 -}}
{{- $auth := $root.Values.nats.auth -}}
{{- $tls := $root.Values.nats.tls -}}
{{- if and $root.Values.nats.enabled (ne $auth.method "password") -}}
{{- fail (printf "nats.auth.method %q: the chart's own server knows passwords only" $auth.method) -}}
{{- end -}}
- --nats={{ include "ordeal.natsURL" $root }}
{{- if eq $auth.method "password" }}
- --user={{ get $auth (printf "%sUser" (index . 1)) }}:${env:NATS_SECRET}
{{- else if eq $auth.method "token" }}
- --token=${env:NATS_SECRET}
{{- else if or (eq $auth.method "creds") (eq $auth.method "nkey") }}
- --{{ $auth.method }}=/run/secrets/ordeal/nats/login
{{- end }}
{{- if $tls.enabled }}
{{- if $tls.secretName }}
- --tls-ca=/run/secrets/ordeal/nats-ca/ca.crt
{{- end }}
{{- if $tls.clientSecretName }}
- --tls-cert=/run/secrets/ordeal/nats-client/tls.crt
- --tls-key=/run/secrets/ordeal/nats-client/tls.key
{{- end }}
{{- end }}
{{- end -}}

{{- define "ordeal.natsEnv" -}}
{{- $root := index . 0 -}}
{{- $auth := $root.Values.nats.auth -}}
{{- if or (eq $auth.method "password") (eq $auth.method "token") -}}
- name: NATS_SECRET
  valueFrom:
    secretKeyRef:
      name: {{ include "ordeal.natsSecret" $root }}
      key: {{ get $auth (printf "%sKey" (index . 1)) }}
{{- end -}}
{{- end -}}

{{- define "ordeal.natsMounts" -}}
{{- $root := index . 0 -}}
{{- $auth := $root.Values.nats.auth -}}
{{- $tls := $root.Values.nats.tls -}}
{{- if or (eq $auth.method "creds") (eq $auth.method "nkey") }}
- name: nats-login
  mountPath: /run/secrets/ordeal/nats
  readOnly: true
{{- end }}
{{- if and $tls.enabled $tls.secretName }}
- name: nats-ca
  mountPath: /run/secrets/ordeal/nats-ca
  readOnly: true
{{- end }}
{{- if and $tls.enabled $tls.clientSecretName }}
- name: nats-client
  mountPath: /run/secrets/ordeal/nats-client
  readOnly: true
{{- end }}
{{- end -}}

{{- define "ordeal.natsVolumes" -}}
{{- $root := index . 0 -}}
{{- $auth := $root.Values.nats.auth -}}
{{- $tls := $root.Values.nats.tls -}}
{{- if or (eq $auth.method "creds") (eq $auth.method "nkey") }}
- name: nats-login
  secret:
    secretName: {{ include "ordeal.natsSecret" $root }}
    defaultMode: 0440
    items:
      - key: {{ get $auth (printf "%sKey" (index . 1)) }}
        path: login
{{- end }}
{{- if and $tls.enabled $tls.secretName }}
- name: nats-ca
  secret:
    secretName: {{ $tls.secretName }}
    defaultMode: 0440
    items: # the server's key is in there too: it stays behind
      - key: ca.crt
        path: ca.crt
{{- end }}
{{- if and $tls.enabled $tls.clientSecretName }}
- name: nats-client
  secret:
    secretName: {{ $tls.clientSecretName }}
    defaultMode: 0440
    items:
      - key: tls.crt
        path: tls.crt
      - key: tls.key
        path: tls.key
{{- end }}
{{- end -}}
