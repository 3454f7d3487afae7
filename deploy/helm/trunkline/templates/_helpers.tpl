{{- define "trunkline.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- /* The addresses of the bus. Where each role has a user, they hold no password. */ -}}
{{- define "trunkline.busUrl" -}}
{{- $login := ternary "" "trunkline:$(TRUNKLINE_NATS_PASSWORD)@" .Values.bus.users.enabled -}}
nats://{{ $login }}bus-0.bus:4222,nats://{{ $login }}bus-1.bus:4222,nats://{{ $login }}bus-2.bus:4222
{{- end }}

{{- define "trunkline.restricted" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{- /* A budget for voluntary disruptions. Needs: name. */ -}}
{{- define "trunkline.disruptionBudget" -}}
{{- if .root.Values.disruptionBudgets.enabled -}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels: { app: trunkline-{{ .name }} }
{{ end }}
{{- end }}

{{- /* An autoscaler by processor time. Needs: name, and the values of the role. */ -}}
{{- define "trunkline.autoscaler" -}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {{ .name }}
spec:
  scaleTargetRef: { apiVersion: apps/v1, kind: Deployment, name: {{ .name }} }
  minReplicas: {{ .values.min }}
  maxReplicas: {{ .values.max }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target: { type: Utilization, averageUtilization: 70 }
{{ end }}

{{- /* Refuses values that contradict each other, which the schema cannot express. */ -}}
{{- define "trunkline.check" -}}
{{- range $role := list "gateway" "actors" "browser" }}
{{- $values := get $.Values $role }}
{{- if gt ($values.min | int) ($values.max | int) }}
{{- fail (printf "Cannot scale %s: %s.min is %v; it must be at most %s.max, which is %v" $role $role $values.min $role $values.max) }}
{{- end }}
{{- end }}
{{- with .Values.ingress }}
{{- if and .appsTlsSecret (not .appsDomain) }}
{{- fail "Cannot make the Ingress: ingress.appsTlsSecret needs ingress.appsDomain" }}
{{- end }}
{{- end }}
{{- end }}
