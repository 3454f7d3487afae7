{{- /* The Deployment of a role. Needs: root, name, and the values of the role. */ -}}
{{- define "trunkline.role" -}}
{{- $users := .root.Values.bus.users -}}
{{- $leave := get .root.Values.settings "TRUNKLINE_LEAVE_SECONDS" | default 0 | int -}}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .name }}
spec:
  # The autoscaler sets the number of pods.
  strategy:
    rollingUpdate: { maxUnavailable: 0, maxSurge: 1 }
  selector:
    matchLabels: { app: trunkline-{{ .name }} }
  template:
    metadata:
      labels: { app: trunkline-{{ .name }}, trunkline-bus-client: "true" }
      annotations:
        # Changed settings replace the pods.
        trunkline/settings: {{ include "trunkline.settings" .root | sha256sum | trunc 16 | quote }}
    spec:
      automountServiceAccountToken: false
      {{- with .root.Values.image.pullSecrets }}
      imagePullSecrets:
        {{- range . }}
        - name: {{ . }}
        {{- end }}
      {{- end }}
      # More than TRUNKLINE_LEAVE_SECONDS, TRUNKLINE_SHUTDOWN_SECONDS and the wait before them, so that a drain is never cut off.
      terminationGracePeriodSeconds: {{ add 20 .root.Values.shutdownSeconds $leave }}
      securityContext:
        runAsNonRoot: true
        fsGroup: 10001
        {{- if eq .name "browser" }}
        # Chromium's sandbox makes user namespaces, which RuntimeDefault refuses: put deploy/seccomp-browser.json on the
        # nodes. The nodes must allow them too: kernel.apparmor_restrict_unprivileged_userns=0 on new Ubuntu.
        seccompProfile: { type: Localhost, localhostProfile: {{ .values.seccompProfile }} }
        {{- else }}
        seccompProfile: { type: RuntimeDefault }
        {{- end }}
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels: { app: trunkline-{{ .name }} }
      containers:
        - name: {{ .name }}
          image: {{ include "trunkline.image" .root }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          envFrom:
            - configMapRef: { name: trunkline }
            {{- with .root.Values.extraEnvFrom }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          env:
            - { name: TRUNKLINE_ROLES, value: {{ .name }} }
            {{- if $users.enabled }}
            - { name: TRUNKLINE_NATS_NKEYS, value: /run/bus/{{ .name }}.nk }
            - { name: TRUNKLINE_NATS_CA, value: /run/bus/ca.pem }
            {{- else }}
            - name: TRUNKLINE_NATS_PASSWORD
              valueFrom: { secretKeyRef: { name: {{ .root.Values.secrets.bus }}, key: password } }
            {{- end }}
            - name: TRUNKLINE_METRICS_TOKEN
              valueFrom: { secretKeyRef: { name: {{ .root.Values.secrets.metrics }}, key: token } }
            {{- if ne .name "browser" }}
            - name: TRUNKLINE_SECRETS_KEY
              valueFrom: { secretKeyRef: { name: {{ .root.Values.secrets.apps }}, key: secrets-key } }
            {{- end }}
            - name: TRUNKLINE_NATS_URL
              value: {{ include "trunkline.busUrl" .root | quote }}
          ports:
            - { name: http, containerPort: 8787 }
            # No Service leads here: Prometheus asks the addresses of pods.
            - { name: metrics, containerPort: 9090 }
          # The process listens when it has reached the bus. A new cluster needs a while.
          startupProbe:
            httpGet: { path: /livez, port: 8787 }
            periodSeconds: 2
            failureThreshold: 90
          readinessProbe:
            httpGet: { path: /healthz, port: 8787 }
            periodSeconds: 2
            timeoutSeconds: 5
          # Not /healthz: a restart does not bring back a bus that is away.
          livenessProbe:
            httpGet: { path: /livez, port: 8787 }
            periodSeconds: 20
            timeoutSeconds: 10
          {{- if eq .name "gateway" }}
          # Balancers notice that the pod leaves while it still takes requests.
          lifecycle:
            preStop: { sleep: { seconds: 5 } }
          {{- end }}
          resources:
            {{- toYaml .values.resources | nindent 12 }}
          securityContext:
            {{- include "trunkline.restricted" . | nindent 12 }}
          volumeMounts:
            - { name: data, mountPath: /data }
            - { name: tmp, mountPath: /tmp }
            {{- if .values.sharedMemory }}
            - { name: shared-memory, mountPath: /dev/shm }
            {{- end }}
            {{- if $users.enabled }}
            - { name: bus, mountPath: /run/bus, readOnly: true }
            {{- end }}
      volumes:
        - { name: data, emptyDir: {} }
        - { name: tmp, emptyDir: {} }
        {{- if .values.sharedMemory }}
        - name: shared-memory
          emptyDir: { medium: Memory, sizeLimit: {{ .values.sharedMemory }} }
        {{- end }}
        {{- if $users.enabled }}
        - name: bus
          secret: { secretName: {{ get $users.roleSecrets .name }}, defaultMode: 0440 }
        {{- end }}
{{ end }}

{{- define "trunkline.settings" -}}
TRUNKLINE_PUBLIC_URL: {{ .Values.publicUrl | quote }}
TRUNKLINE_REPLICAS: "3"
TRUNKLINE_METRICS_PORT: "9090"
TRUNKLINE_SHUTDOWN_SECONDS: {{ .Values.shutdownSeconds | quote }}
{{- with .Values.ingress.appsDomain }}
TRUNKLINE_APPS_DOMAIN: {{ . | quote }}
{{- end }}
{{- range $name, $value := .Values.settings }}
{{- /* A large number is a float64, which would print as 2e+10. */}}
{{- if and (kindIs "float64" $value) (eq $value (floor $value)) }}
{{ $name }}: {{ $value | int64 | quote }}
{{- else }}
{{ $name }}: {{ $value | toString | quote }}
{{- end }}
{{- end }}
{{- end }}
