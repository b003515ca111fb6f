{{/* Labels by which servers of this release are chosen. */}}
{{- define "spexd.selector" -}}
app.kubernetes.io/name: spexd
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "spexd.labels" -}}
{{ include "spexd.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}
