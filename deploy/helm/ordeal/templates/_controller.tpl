{{/* A literal secret would end up in a ConfigMap, so it is refused before it
     leaves the machine of whoever typed it. ordeal has the same rule under --nats. */}}
{{- define "ordeal.referencesOnly" -}}
{{- $scan := .Values.controller.scan -}}
{{- range $field := list "header" "env" -}}
{{- range $name, $value := default dict (get $scan $field) -}}
{{- if not (contains "$" (toString $value)) -}}
{{- fail (printf "controller.scan.%s.%s holds a value: write a reference such as ${env:TOKEN} and name its Secret in agents.targetSecrets" $field $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with get $scan "api-key" -}}
{{- if not (contains "$" .) -}}
{{- fail "controller.scan.api-key holds a value: write a reference such as ${env:MY_KEY} and name its Secret in agents.targetSecrets" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A scan is not tried again by itself: a second try is a second load on the
     target, and exit code 1 is an answer. */}}
{{- define "ordeal.jobSpec" -}}
backoffLimit: 0
activeDeadlineSeconds: {{ int .Values.controller.deadlineSeconds }}
template:
  metadata:
    labels:
      {{- include "ordeal.selector" (list . "controller") | nindent 6 }}
    annotations:
      checksum/config: {{ printf "%s\n%s" (toYaml .Values.controller.scan) .Values.controller.policy | sha256sum }}
      ordeal/run: {{ .Values.controller.run | quote }}
      {{- with .Values.controller.podAnnotations }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
  spec:
    {{- include "ordeal.podSecurity" . | nindent 4 }}
    restartPolicy: Never
    # SIGTERM halts the agents; what was measured until then is written.
    terminationGracePeriodSeconds: {{ add (int .Values.controller.drainSeconds) 15 }}
    {{- with include "ordeal.placement" .Values.controller }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with include "ordeal.waitForNATS" . }}
    {{- . | nindent 4 }}
    {{- end }}
    containers:
      - name: controller
        image: {{ include "ordeal.image" (list .Values.image .Chart.AppVersion) }}
        imagePullPolicy: {{ .Values.image.pullPolicy }}
        command: [/usr/local/bin/ordeal]
        args:
          - {{ .Values.controller.verb }}
          - --file=/etc/ordeal/scan.yaml
          {{- include "ordeal.natsArgs" (list . "controller") | nindent 10 }}
          {{- range $key, $value := .Values.controller.select }}
          - {{ printf "--select=%s=%v" $key $value | quote }}
          {{- end }}
          - --min-agents={{ int .Values.controller.minAgents }}
          - --wait-agents={{ .Values.controller.waitAgents }}
          - --json-out=/out/$(POD_NAME).json
          {{- if .Values.controller.policy }}
          - --policy=/etc/ordeal/policy.yaml
          {{- end }}
          - --metrics-addr=:9090
          {{- range .Values.controller.extraArgs }}
          - {{ . | quote }}
          {{- end }}
        env:
          - name: POD_NAME
            valueFrom:
              fieldRef:
                fieldPath: metadata.name
          {{- with include "ordeal.natsEnv" (list . "controller") }}
          {{- . | nindent 10 }}
          {{- end }}
          {{- with .Values.controller.env }}
          {{- toYaml . | nindent 10 }}
          {{- end }}
        ports:
          - name: metrics
            containerPort: 9090
            protocol: TCP
        resources:
          {{- toYaml .Values.controller.resources | nindent 10 }}
        {{- include "ordeal.containerSecurity" . | nindent 8 }}
        volumeMounts:
          - name: scan
            mountPath: /etc/ordeal
            readOnly: true
          - name: out
            mountPath: /out
          - name: tmp
            mountPath: /tmp
          {{- with include "ordeal.natsMounts" (list . "controller") }}
          {{- . | nindent 10 }}
          {{- end }}
    volumes:
      - name: scan
        configMap:
          name: {{ include "ordeal.fullname" . }}-scan
      - name: out
        {{- if .Values.controller.resultsClaim }}
        persistentVolumeClaim:
          claimName: {{ .Values.controller.resultsClaim }}
        {{- else }}
        emptyDir:
          sizeLimit: 256Mi
        {{- end }}
      - name: tmp
        emptyDir:
          sizeLimit: 64Mi
      {{- with include "ordeal.natsVolumes" (list . "controller") }}
      {{- . | nindent 6 }}
      {{- end }}
{{- end -}}
