{{/* Names, labels, images. */}}

{{- define "ordeal.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* At most 40 characters: a Job's pods append up to 23 of their own to it. */}}
{{- define "ordeal.fullname" -}}
{{- $name := include "ordeal.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Called with (list . "component"). */}}
{{- define "ordeal.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "ordeal.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "ordeal.labels" -}}
{{- $root := index . 0 -}}
{{ include "ordeal.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* Called with (list image defaultTag). */}}
{{- define "ordeal.image" -}}
{{- $image := index . 0 -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ default (index . 1) $image.tag }}
{{- end -}}
{{- end -}}

{{/* The agents' Deployments as {zones: [{name, replicas, …}]}; without zones there is one, called "". */}}
{{- define "ordeal.zones" -}}
{{- if .Values.agents.zones -}}
{{ toYaml (dict "zones" .Values.agents.zones) }}
{{- else -}}
{{ toYaml (dict "zones" (list (dict "name" "" "replicas" .Values.agents.replicas))) }}
{{- end -}}
{{- end -}}

{{- define "ordeal.agentCount" -}}
{{- $n := 0 -}}
{{- range (include "ordeal.zones" . | fromYaml).zones -}}
{{- $n = add $n (int .replicas) -}}
{{- end -}}
{{ $n }}
{{- end -}}
