{{- define "gantry.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "gantry.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "gantry.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end -}}

{{- define "gantry.image" -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}

{{- /* What the pods carry; what the DaemonSet selects them by is all of it, or what the override says. */ -}}
{{- define "gantry.podLabels" -}}
app.kubernetes.io/name: {{ include "gantry.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- with .Values.selectorLabelsOverride }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "gantry.selectorLabels" -}}
{{- if .Values.selectorLabelsOverride -}}
{{ toYaml .Values.selectorLabelsOverride }}
{{- else -}}
{{ include "gantry.podLabels" . }}
{{- end -}}
{{- end -}}

{{- define "gantry.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "gantry.podLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- /* The name of the ConfigMap with configurations; "" when there is none. */ -}}
{{- define "gantry.config" -}}
{{- if .Values.config.name -}}
{{ .Values.config.name }}
{{- else if .Values.config.map -}}
{{ include "gantry.fullname" . }}-configs
{{- end -}}
{{- end -}}

{{- define "gantry.affinity" -}}
{{- if .Values.nodeLabel -}}
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
      - matchExpressions:
          - {key: {{ .Values.nodeLabel | quote }}, operator: Exists}
{{- else if .Values.affinity -}}
{{ toYaml .Values.affinity }}
{{- end -}}
{{- end -}}

{{- define "gantry.identity" -}}
- {name: NODE_NAME, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
- {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
- {name: NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
{{- end -}}

{{- /* Which configuration is this node's: read by `gantry agent`, and by config-manager. */ -}}
{{- define "gantry.configChoice" -}}
- {name: NODE_LABEL, value: nvidia.com/device-plugin.config}
- {name: CONFIG_FILE_SRCDIR, value: /available-configs}
- {name: DEFAULT_CONFIG, value: {{ .Values.config.default | quote }}}
- {name: FALLBACK_STRATEGIES, value: {{ join "," .Values.config.fallbackStrategies | quote }}}
{{- end -}}

{{- /* Values that were set, as the environment that NVIDIA's plugin and feature discovery read. */ -}}
{{- define "gantry.settings" -}}
{{- $v := .Values -}}
{{- $settings := dict
  "MIG_STRATEGY" $v.migStrategy
  "FAIL_ON_INIT_ERROR" $v.failOnInitError
  "DEVICE_ID_STRATEGY" $v.deviceIDStrategy
  "NVIDIA_DRIVER_ROOT" $v.nvidiaDriverRoot
  "NVIDIA_DEV_ROOT" $v.nvidiaDevRoot
  "GDRCOPY_ENABLED" $v.gdrcopyEnabled
  "GDS_ENABLED" $v.gdsEnabled
  "MOFED_ENABLED" $v.mofedEnabled
  "PASS_DEVICE_SPECS" $v.compatWithCPUManager
  "SHARED_DEVICES_ALLOCATION_POLICY" $v.sharedDevicesAllocationPolicy
  "DEVICE_DISCOVERY_STRATEGY" $v.deviceDiscoveryStrategy
  "NVIDIA_CDI_HOOK_PATH" $v.cdi.nvidiaHookPath
  "CDI_FEATURE_FLAGS" $v.cdi.featureFlags
  "IMEX_REQUIRED" $v.imex.required
  "MPS_ROOT" $v.mps.root
  "GFD_NO_TIMESTAMP" $v.gfd.noTimestamp
  "GFD_SLEEP_INTERVAL" $v.gfd.sleepInterval
  "GANTRY_LABELS" (ternary nil false $v.gfd.enabled)
  "GANTRY_EXPORTER_PORT" $v.metrics.exporter.port -}}
{{- range $name, $value := $settings }}
{{- if not (kindIs "invalid" $value) }}
- {name: {{ $name }}, value: {{ kindIs "float64" $value | ternary ($value | toString) $value | quote }}}
{{- end }}
{{- end }}
{{- with $v.deviceListStrategy }}
- {name: DEVICE_LIST_STRATEGY, value: {{ kindIs "slice" . | ternary (join "," .) . | quote }}}
{{- end }}
{{- with $v.imex.channelIDs }}
- {name: IMEX_CHANNEL_IDS, value: {{ join "," . | quote }}}
{{- end }}
{{- end -}}
