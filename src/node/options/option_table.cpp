// SPDX-License-Identifier: Apache-2.0
// The one table of options. Help, documentation, flags, environment and file are generated from it.
#include "node/options/options.hpp"

#include <array>

// The location of a value in Options.
#define GANTRY_FIELD(member) [](Options& o) -> decltype(Options::member)& { return o.member; }
#define GANTRY_IN(group, member) \
  [](Options& o) -> decltype(o.group.member)& { return o.group.member; }

namespace gantry::options {
namespace {

constexpr Programs kAgent = bit_of(Program::Agent);
constexpr Programs kPlugin = kAgent | bit_of(Program::Plugin);
constexpr Programs kFeatures = kAgent | bit_of(Program::FeatureDiscovery);
constexpr Programs kBoth = kPlugin | kFeatures;
constexpr Programs kKube = kFeatures | bit_of(Program::Gpushare);
constexpr Programs kKubelet = kPlugin | bit_of(Program::Gpushare);
constexpr Programs kGke = kAgent | bit_of(Program::Gke);
constexpr Programs kMps = bit_of(Program::MpsDaemon);
constexpr Programs kGpushare = kAgent | bit_of(Program::Gpushare);
constexpr Programs kAll = kBoth | kGke | kMps | kGpushare;

constexpr std::array kTable{
    // NVIDIA's device plugin
    Option{"mig-strategy", "GFD_MIG_STRATEGY|MIG_STRATEGY", "flags.migStrategy",
           GANTRY_FIELD(mig_strategy), kBoth | kMps,
           "How MIG instances are offered: not at all, as nvidia.com/gpu, or by profile"},
    Option{"fail-on-init-error", "GFD_FAIL_ON_INIT_ERROR|FAIL_ON_INIT_ERROR",
           "flags.failOnInitError", GANTRY_FIELD(fail_on_init_error), kBoth,
           "Exit if the driver does not start, instead of waiting for it. Default of NVIDIA's "
           "programs: true"},
    Option{"driver-root|nvidia-driver-root", "NVIDIA_DRIVER_ROOT", "flags.nvidiaDriverRoot",
           GANTRY_FIELD(driver_root), kPlugin, "Root directory of the driver on the host"},
    Option{"dev-root|nvidia-dev-root", "NVIDIA_DEV_ROOT", "flags.nvidiaDevRoot",
           GANTRY_FIELD(dev_root), kPlugin, "Directory on the host that contains the device nodes"},
    Option{"pass-device-specs", "PASS_DEVICE_SPECS", "flags.plugin.passDeviceSpecs",
           GANTRY_FIELD(pass_device_specs), kPlugin,
           "Always return device nodes to the kubelet too, with every strategy"},
    Option{"device-list-strategy", "DEVICE_LIST_STRATEGY", "flags.plugin.deviceListStrategy",
           GANTRY_FIELD(list_strategies), kKubelet,
           "How containers get their devices; takes a list. Default: what the engine supports"},
    Option{"device-id-strategy", "DEVICE_ID_STRATEGY", "flags.plugin.deviceIDStrategy",
           GANTRY_FIELD(id_strategy), kPlugin, "How devices are named to the runtime"},
    Option{"gdrcopy-enabled", "GDRCOPY_ENABLED", "flags.gdrcopyEnabled", GANTRY_FIELD(gdrcopy),
           kPlugin, "Give GDRCopy to every GPU container"},
    Option{"gds-enabled", "GDS_ENABLED", "flags.gdsEnabled", GANTRY_FIELD(gds), kPlugin,
           "Give GPUDirect Storage to every GPU container"},
    Option{"mofed-enabled", "MOFED_ENABLED", "flags.mofedEnabled", GANTRY_FIELD(mofed), kPlugin,
           "Give InfiniBand to every GPU container"},
    Option{"cdi-annotation-prefix", "CDI_ANNOTATION_PREFIX", "flags.plugin.cdiAnnotationPrefix",
           GANTRY_FIELD(cdi_annotation_prefix), kKubelet, "Prefix of the key of CDI annotations"},
    Option{"nvidia-cdi-hook-path|nvidia-ctk-path", "NVIDIA_CDI_HOOK_PATH|NVIDIA_CTK_PATH",
           "flags.plugin.nvidiaCTKPath", GANTRY_FIELD(cdi_hook_path), kKubelet,
           "Path of the hook on the host; Gantry's specifications need no hook"},
    Option{"driver-root-ctr-path|container-driver-root",
           "DRIVER_ROOT_CTR_PATH|CONTAINER_DRIVER_ROOT", "flags.plugin.containerDriverRoot",
           GANTRY_FIELD(driver_root_in_container), kBoth,
           "Where the driver's root is mounted in this program's container"},
    Option{"mps-root", "MPS_ROOT", "flags.mpsRoot", GANTRY_FIELD(mps_root), kPlugin | kMps,
           "Directory of the MPS daemons on the host"},
    Option{"shared-devices-allocation-policy", "SHARED_DEVICES_ALLOCATION_POLICY",
           "flags.plugin.sharedDevicesAllocationPolicy", GANTRY_FIELD(shared_policy), kPlugin,
           "Spread replicas and instances over the GPUs, or fill one after the other"},
    Option{"device-discovery-strategy", "DEVICE_DISCOVERY_STRATEGY",
           "flags.deviceDiscoveryStrategy", GANTRY_FIELD(discovery), kBoth, "How GPUs are found"},
    Option{"imex-channel-ids", "IMEX_CHANNEL_IDS", "imex.channelIDs", GANTRY_FIELD(imex_channels),
           kPlugin, "IMEX channels for every GPU container: none, or 0"},
    Option{"imex-required", "IMEX_REQUIRED", "imex.required", GANTRY_FIELD(imex_required), kPlugin,
           "Whether a missing IMEX channel is an error"},
    Option{"kubelet-socket", "KUBELET_SOCKET", "", GANTRY_FIELD(kubelet_socket), kKubelet,
           "The kubelet's socket; empty: do not register"},
    Option{"config-file", "GFD_CONFIG_FILE|CONFIG_FILE", "", GANTRY_FIELD(config_file),
           kBoth | kMps | kGpushare, "A file with options, YAML or JSON, with version: v1"},
    Option{"cdi-feature-flags", "CDI_FEATURE_FLAGS", "", GANTRY_FIELD(cdi_feature_flags), kPlugin,
           "Features of NVIDIA's specification generator; Gantry's generator has none of them"},
    Option{"cdi-disable-hooks", "CDI_DISABLE_HOOKS", "", GANTRY_FIELD(cdi_disable_hooks), kPlugin,
           "Hooks to leave out of the specification, or all; Gantry's specification has no hooks"},
    Option{"", "DP_DISABLE_HEALTHCHECKS", "", GANTRY_FIELD(disable_healthchecks), kKubelet,
           "XIDs to ignore; all or xids: ignore every XID"},
    Option{"", "DP_ENABLE_HEALTHCHECKS", "", GANTRY_FIELD(enable_healthchecks), kKubelet,
           "XIDs that are always fatal, even if another option ignores them; all: every XID"},

    // GPU feature discovery
    Option{"oneshot", "GFD_ONESHOT", "flags.gfd.oneshot", GANTRY_IN(features, oneshot), kFeatures,
           "Write the labels once and exit"},
    Option{"no-timestamp", "GFD_NO_TIMESTAMP", "flags.gfd.noTimestamp",
           GANTRY_IN(features, no_timestamp), kFeatures, "Do not write a label with the time"},
    Option{"sleep-interval", "GFD_SLEEP_INTERVAL", "flags.gfd.sleepInterval",
           GANTRY_IN(features, sleep_interval), kFeatures,
           "Time between two updates of the labels: 60s, 1m30s, or infinite"},
    Option{"output-file|output|o", "GFD_OUTPUT_FILE", "flags.gfd.outputFile",
           GANTRY_IN(features, output_file), kFeatures,
           "File to write the labels to; empty: standard output"},
    Option{"machine-type-file", "GFD_MACHINE_TYPE_FILE", "flags.gfd.machineTypeFile",
           GANTRY_IN(features, machine_type_file), kFeatures, "File to read the machine type from"},
    Option{"use-node-feature-api", "GFD_USE_NODE_FEATURE_API|USE_NODE_FEATURE_API",
           "flags.useNodeFeatureAPI", GANTRY_IN(features, use_node_feature_api), kFeatures,
           "Write the labels to a NodeFeature object instead of a file"},

    // The Kubernetes API
    Option{"kubeconfig", "KUBECONFIG", "", GANTRY_IN(kube, kubeconfig), kKube,
           "Kubeconfig file for the Kubernetes API; empty: the service account of the pod"},
    Option{"kube-api-qps", "KUBE_API_QPS", "", GANTRY_IN(kube, api_qps), kKube,
           "Requests per second to the Kubernetes API, at most"},
    Option{"kube-api-burst", "KUBE_API_BURST", "", GANTRY_IN(kube, api_burst), kKube,
           "Requests to the Kubernetes API in one burst, at most"},
    Option{"namespace", "NAMESPACE", "", GANTRY_IN(kube, name_space), kKube,
           "Namespace for NodeFeature objects and events"},
    Option{"node-name", "NODE_NAME", "", GANTRY_IN(kube, node_name), kAll, "Name of this node"},
    Option{"pod-name", "POD_NAME", "", GANTRY_IN(kube, pod_name), kKube, "Name of this pod"},

    // GKE's device plugin
    Option{"host-path", "", "", GANTRY_IN(gke, host_path), kGke,
           "Directory of the driver on the host"},
    Option{"container-path", "", "", GANTRY_IN(gke, container_path), kGke,
           "Directory of the driver in containers"},
    Option{"host-vulkan-icd-path", "", "", GANTRY_IN(gke, host_vulkan_icd_path), kGke,
           "Vulkan's configuration on the host"},
    Option{"container-vulkan-icd-path", "", "", GANTRY_IN(gke, container_vulkan_icd_path), kGke,
           "Vulkan's configuration in containers"},
    Option{"plugin-directory", "", "", GANTRY_IN(gke, plugin_directory), kGke,
           "The kubelet's device plugin directory"},
    Option{"enable-container-gpu-metrics", "", "", GANTRY_IN(gke, container_gpu_metrics), kGke,
           "Serve GPU metrics per container"},
    Option{"enable-health-monitoring", "", "", GANTRY_IN(gke, health_monitoring), kGke,
           "Watch for XIDs"},
    Option{"gpu-metrics-port", "", "", GANTRY_IN(gke, metrics_port), kGke, "Port for the metrics"},
    Option{"gpu-metrics-collection-interval", "", "", GANTRY_IN(gke, metrics_collection_ms), kGke,
           "Milliseconds between two readings of the metrics"},
    Option{"gpu-config", "", "", GANTRY_IN(gke, gpu_config), kGke,
           "A file with the partition size and the sharing strategy of GPUs"},
    Option{"gpu-fraction-divisor-file", "", "", GANTRY_IN(gke, gpu_fraction_divisor_file), kGke,
           "A file with the number of machines that share the physical GPU"},
    Option{"publish-driver-version", "", "", GANTRY_IN(gke, publish_driver_version), kGke,
           "Annotate the node with the driver's version"},
    Option{"", "XID_CONFIG", "", GANTRY_IN(gke, critical_xids), kGke,
           "XIDs that make a GPU unhealthy"},

    // GPUs in shares
    Option{"share-gpus", "GANTRY_SHARE_GPUS", "gantry.shareGpus", GANTRY_IN(shares, all), kGpushare,
           "Offer every GPU in shares with enforced limits, unless gantry.gpus says otherwise"},
    Option{"memory-unit", "GANTRY_MEMORY_UNIT", "gantry.memoryUnit", GANTRY_IN(shares, unit),
           kGpushare, "Size of one unit of aliyun.com/gpu-mem on this node"},
    Option{"share-slots", "GANTRY_SHARE_SLOTS", "gantry.shareSlots", GANTRY_IN(shares, slots),
           kGpushare, "Number of containers that may share one GPU"},

    // gpushare's device plugin
    Option{"mps", "", "", GANTRY_IN(gpushare, mps), kGpushare,
           "Accepted, without effect, as in gpushare"},
    Option{"health-check", "", "", GANTRY_IN(gpushare, health_check), kGpushare,
           "Accepted: health is always monitored"},
    Option{
        "query-kubelet", "", "", GANTRY_IN(gpushare, query_kubelet), kGpushare,
        "Accepted: the agent does not guess the pod, so it needs no list of pods from the kubelet"},
    Option{"kubelet-address", "", "", GANTRY_IN(gpushare, kubelet_address), kGpushare,
           "Accepted, without effect"},
    Option{"kubelet-port", "", "", GANTRY_IN(gpushare, kubelet_port), kGpushare,
           "Accepted, without effect"},
    Option{"client-cert", "", "", GANTRY_IN(gpushare, client_certificate), kGpushare,
           "Accepted, without effect"},
    Option{"client-key", "", "", GANTRY_IN(gpushare, client_key), kGpushare,
           "Accepted, without effect"},
    Option{"token", "", "", GANTRY_IN(gpushare, token), kGpushare, "Accepted, without effect"},
    Option{"timeout", "", "", GANTRY_IN(gpushare, timeout_s), kGpushare,
           "Accepted, without effect"},

    // klog and glog
    Option{"v", "", "", GANTRY_IN(log, verbosity), kAll,
           "Log verbosity: a larger number logs more"},
    Option{"logtostderr", "", "", GANTRY_IN(log, to_stderr), kAll, "Accepted: logs go to stderr"},
    Option{"alsologtostderr", "", "", GANTRY_IN(log, also_to_stderr), kAll,
           "Accepted: logs go to stderr"},
    Option{"stderrthreshold", "", "", GANTRY_IN(log, stderr_threshold), kAll,
           "Accepted: everything goes to stderr"},
    Option{"vmodule", "", "", GANTRY_IN(log, vmodule), kAll, "Accepted, without effect"},
    Option{"log_dir", "", "", GANTRY_IN(log, directory), kAll, "Accepted, without effect"},
    Option{"log_file", "", "", GANTRY_IN(log, file), kAll, "Accepted, without effect"},
    Option{"log_file_max_size", "", "", GANTRY_IN(log, file_max_size), kAll,
           "Accepted, without effect"},
    Option{"log_backtrace_at", "", "", GANTRY_IN(log, backtrace_at), kAll,
           "Accepted, without effect"},
    Option{"skip_headers", "", "", GANTRY_IN(log, skip_headers), kAll, "Accepted, without effect"},
    Option{"skip_log_headers", "", "", GANTRY_IN(log, skip_log_headers), kAll,
           "Accepted, without effect"},
    Option{"add_dir_header", "", "", GANTRY_IN(log, add_dir_header), kAll,
           "Accepted, without effect"},
    Option{"one_output", "", "", GANTRY_IN(log, one_output), kAll, "Accepted, without effect"},

    // Ours
    Option{"root", "GANTRY_ROOT", "", GANTRY_FIELD(root), kAll,
           "Root of the machine: /, or the directory of a simulated one"},
    Option{"log-format", "GANTRY_LOG_FORMAT", "gantry.logFormat", GANTRY_IN(log, format), kAll,
           "Write log lines as text or as JSON"},
    Option{"direct-capabilities", "GANTRY_DIRECT_CAPABILITIES", "gantry.directCapabilities",
           GANTRY_FIELD(direct_capabilities), kPlugin,
           "Driver capabilities that containers get with the strategy direct"},
    Option{"cri-socket", "GANTRY_CRI_SOCKET", "gantry.criSocket", GANTRY_FIELD(cri_socket),
           kKubelet,
           "Socket of the container engine; empty: the usual sockets of containerd and CRI-O"},
    Option{"pod-resources-socket", "GANTRY_POD_RESOURCES_SOCKET", "gantry.podResourcesSocket",
           GANTRY_FIELD(pod_resources_socket), kAll,
           "The kubelet's podresources socket, which lists the devices of each container"},
    Option{"labels", "GANTRY_LABELS", "gantry.labels", GANTRY_IN(features, labels), kAgent,
           "Whether the agent labels its node"},
    Option{"exporter-port", "GANTRY_EXPORTER_PORT", "gantry.exporterPort",
           GANTRY_FIELD(exporter_port), kKubelet,
           "Port for the metrics of dcgm-exporter; 0: do not serve them"},
    Option{"publish", "GANTRY_PUBLISH", "gantry.publish", GANTRY_FIELD(publish), kAgent,
           "Whether the agent writes driver directory, inventory and CDI specification"},
};

}  // namespace

std::span<const Option> option_table() {
  return kTable;
}

}  // namespace gantry::options
