// SPDX-License-Identifier: Apache-2.0
// All options that say how a node offers its GPUs: those of NVIDIA's device plugin and feature
// discovery, those of GKE's plugin, and our own. One table (option_table) defines flags,
// environment variables, file keys, help and documentation. A flag overrides the environment, which
// overrides the file, which overrides the default.
#pragma once

#include "base/core/result.hpp"
#include "gpu/model/advertised.hpp"
#include "gpu/model/enum_names.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace gantry::options {

// The program whose flags are accepted. The agent accepts the flags of all of them.
enum class Program : std::uint8_t { Agent, Plugin, FeatureDiscovery, Gke, MpsDaemon, Gpushare };

enum class MigStrategy : std::uint8_t { None, Single, Mixed };
enum class ListStrategy : std::uint8_t { EnvVar, VolumeMounts, CdiAnnotations, CdiCri, Direct };
enum class IdStrategy : std::uint8_t { Uuid, Index };
enum class SharedPolicy : std::uint8_t { Distributed, Packed };
enum class DiscoveryStrategy : std::uint8_t { Auto, Nvml, Tegra, Vfio };
enum class LogFormat : std::uint8_t { Text, Json };
enum class SharingKind : std::uint8_t { None, TimeSlicing, Mps };
enum class MemoryUnit : std::uint8_t { GiB, MiB };  // unit of aliyun.com/gpu-mem

inline constexpr std::chrono::milliseconds kInfinite = std::chrono::milliseconds::max();
inline constexpr std::string_view kResourcePrefix = "nvidia.com/";

// The devices of an entry in the file: all, the first `count`, or those in `ids`.
struct DeviceChoice {
  bool all = true;
  std::int64_t count = 0;        // 0: not by count
  std::vector<std::string> ids;  // indexes "0", "0:1", or UUIDs
  bool operator==(const DeviceChoice&) const = default;
};

// sharing.timeSlicing.resources[], sharing.mps.resources[]
struct SharedResource {
  std::string name;    // "nvidia.com/gpu"
  std::string rename;  // "": depends on renameByDefault
  DeviceChoice devices;
  std::int64_t replicas = 0;
  std::string where;  // "config.yaml:12"
  bool operator==(const SharedResource&) const = default;
};

struct Sharing {
  SharingKind kind = SharingKind::None;
  bool rename_by_default = false;
  bool only_one = false;  // failRequestsGreaterThanOne
  std::vector<SharedResource> resources;
  bool operator==(const Sharing&) const = default;
};

// resources.gpus[], resources.mig[]: the resource name for a model or a MIG profile.
struct NameRule {
  std::string pattern;  // with * and ?, for the product name or the MIG profile
  std::string name;     // "nvidia.com/a100"
  std::string where;
  bool operator==(const NameRule&) const = default;
};

// gantry.gpus[] (ours): what some GPUs are used for.
struct GpuRule {
  DeviceChoice devices;
  model::AllocationMode use = model::AllocationMode::Whole;
  std::int64_t replicas = 0;  // only with use: replicas
  std::string name;           // "": from resources.gpus
  std::string where;
  bool operator==(const GpuRule&) const = default;
};

// GPU feature discovery (gpu-feature-discovery).
struct FeatureOptions {
  bool oneshot = false;
  bool no_timestamp = false;
  // KInfinite: write the labels once and keep running.
  std::chrono::milliseconds sleep_interval{60'000};
  std::string output_file = "/etc/kubernetes/node-feature-discovery/features.d/gfd";  // "": stdout
  std::string machine_type_file = "/sys/class/dmi/id/product_name";
  bool use_node_feature_api = true;
  bool labels = true;  // for the agent: whether it writes labels
  bool operator==(const FeatureOptions&) const = default;
};

// Options for access to the Kubernetes API.
struct KubeOptions {
  std::string kubeconfig;  // "": the pod's service account
  double api_qps = 5;
  std::int64_t api_burst = 10;
  std::string name_space = "default";
  std::string node_name;
  std::string pod_name;
  bool operator==(const KubeOptions&) const = default;
};

// nvidia-gpu-device-plugin of GKE.
struct GkeOptions {
  std::string host_path = "/home/kubernetes/bin/nvidia";
  std::string container_path = "/usr/local/nvidia";
  std::string host_vulkan_icd_path = "/home/kubernetes/bin/nvidia/vulkan/icd.d";
  std::string container_vulkan_icd_path = "/etc/vulkan/icd.d";
  std::string plugin_directory = "/device-plugin";
  bool container_gpu_metrics = false;
  bool health_monitoring = false;
  std::int64_t metrics_port = 2112;
  std::int64_t metrics_collection_ms = 30'000;
  std::string gpu_config = "/etc/nvidia/gpu_config.json";
  std::string gpu_fraction_divisor_file = "/etc/nvidia/gpu-fraction-divisor.txt";
  bool publish_driver_version = false;
  std::vector<std::int64_t> critical_xids;  // XID_CONFIG
  bool operator==(const GkeOptions&) const = default;
};

// /etc/nvidia/gpu_config.json
struct GkeConfig {
  std::string partition_size;  // "1g.5gb"; "": not divided
  SharingKind sharing = SharingKind::None;
  std::int64_t clients_per_gpu = 0;  // > 0 if GPUs are shared
  std::vector<std::int64_t> critical_xids;
  bool operator==(const GkeConfig&) const = default;
};

// GPUs in shares: how the kubelet counts them.
struct SharesOptions {
  bool all = false;  // every GPU that no rule uses for something else
  MemoryUnit unit = MemoryUnit::GiB;
  std::int64_t slots = 32;  // maximum number of containers on one GPU
  bool operator==(const SharesOptions&) const = default;
};

// gpushare-device-plugin-v2: the flags that no other program has.
struct GpushareOptions {
  bool mps = false;
  bool health_check = false;
  bool query_kubelet = false;
  std::string kubelet_address = "0.0.0.0";
  std::int64_t kubelet_port = 10250;
  std::string client_certificate;
  std::string client_key;
  std::string token;
  std::int64_t timeout_s = 10;
  bool operator==(const GpushareOptions&) const = default;
};

// The flags of klog and glog, which existing manifests use.
struct LogOptions {
  LogFormat format = LogFormat::Text;
  std::int64_t verbosity = 0;  // -v
  bool to_stderr = true;
  bool also_to_stderr = false;
  std::string stderr_threshold = "2";
  std::string vmodule;
  std::string directory;
  std::string file;
  std::int64_t file_max_size = 1800;
  std::string backtrace_at;
  bool skip_headers = false;
  bool skip_log_headers = false;
  bool add_dir_header = false;
  bool one_output = false;
  bool operator==(const LogOptions&) const = default;
};

struct Options {
  Program program = Program::Agent;
  bool publish = true;  // the agent writes driver directory, inventory and CDI specification

  // NVIDIA's device plugin
  MigStrategy mig_strategy = MigStrategy::None;
  bool fail_on_init_error = false;  // true by default under the names of NVIDIA's programs
  std::string driver_root = "/";
  std::string dev_root;  // "": where the inventory found the nodes
  bool pass_device_specs = false;
  std::vector<ListStrategy> list_strategies;  // empty: chosen by what the engine supports
  IdStrategy id_strategy = IdStrategy::Uuid;
  bool gdrcopy = false;
  bool gds = false;
  bool mofed = false;
  std::string cdi_annotation_prefix = "cdi.k8s.io/";
  std::string cdi_hook_path = "/usr/bin/nvidia-ctk";
  std::string driver_root_in_container = "/driver-root";
  std::string mps_root;
  SharedPolicy shared_policy = SharedPolicy::Distributed;
  DiscoveryStrategy discovery = DiscoveryStrategy::Auto;
  std::vector<std::int64_t> imex_channels;  // empty, or 0
  bool imex_required = false;
  std::string kubelet_socket = "/var/lib/kubelet/device-plugins/kubelet.sock";  // "": no kubelet
  std::string config_file;
  std::vector<std::string> cdi_feature_flags;
  std::vector<std::string> cdi_disable_hooks;
  std::string disable_healthchecks;  // "all", "xids", or XIDs to ignore
  std::string enable_healthchecks;   // "all", or XIDs that are always fatal

  FeatureOptions features;
  KubeOptions kube;
  GkeOptions gke;
  SharesOptions shares;
  GpushareOptions gpushare;
  LogOptions log;

  // Ours
  std::string root = "/";                                     // of the machine
  std::string direct_capabilities = "compute,utility,video";  // what `direct` mounts
  std::string cri_socket;                                     // "": try the usual sockets
  std::string pod_resources_socket = "/var/lib/kubelet/pod-resources/kubelet.sock";
  std::int64_t exporter_port = 9400;  // for dcgm-exporter's metrics; 0: not served

  // Only in the file
  Sharing sharing;  // mps takes precedence over timeSlicing
  std::vector<NameRule> gpu_names;
  std::vector<NameRule> mig_names;
  std::vector<GpuRule> gpus;
  GkeConfig gke_config;
  bool operator==(const Options&) const = default;
};

// ---- the table

template <class T>
using Field = T& (*)(Options&);

using AnyField =
    std::variant<Field<bool>, Field<std::string>, Field<std::int64_t>, Field<double>,
                 Field<std::vector<std::string>>, Field<std::vector<std::int64_t>>,
                 Field<std::chrono::milliseconds>, Field<MigStrategy>, Field<IdStrategy>,
                 Field<SharedPolicy>, Field<DiscoveryStrategy>, Field<LogFormat>, Field<MemoryUnit>,
                 Field<std::vector<ListStrategy>>>;

using Programs = std::uint8_t;  // one bit for each Program
constexpr Programs bit_of(Program program) {
  return static_cast<Programs>(1U << static_cast<unsigned>(program));
}

struct Option {
  std::string_view flags;        // "driver-root|nvidia-driver-root"; "": none
  std::string_view environment;  // "A|B": the first one that is set is used; "": none
  std::string_view key;          // "flags.nvidiaDriverRoot"; "": not in the file
  AnyField field;
  Programs programs = 0;
  std::string_view meaning;
};

std::span<const Option> option_table();

// The value as text, in the form of a flag's value.
std::string value_text(const Option& option, const Options& options);

std::string help_text(Program program);
std::string documentation();  // Markdown: one table with all options

// ---- reading

using EnvironmentLookup = std::function<std::optional<std::string>(std::string_view)>;
using FileReader = std::function<Result<std::string>(const std::string& path)>;

struct ParsedOptions {
  Options options;
  std::vector<std::string> notes;  // for the log
  bool help = false;
  bool version = false;
};

// Invalid for an unknown flag or key, with the nearest known one (and the line), and for a value
// that is not allowed. `arguments` does not include the program name.
Result<ParsedOptions> read_options(Program program, std::span<const std::string> arguments,
                                   const EnvironmentLookup& environment,
                                   const FileReader& read_file);

// Reads the configuration file of NVIDIA's plugin, YAML or JSON, `version: v1`. `name` is the
// file's name in messages.
Status apply_file(std::string_view text, std::string_view name, Options& options);

// Reads GKE's file. The case of keys does not matter and unknown keys are ignored, as in GKE's
// plugin.
Result<GkeConfig> parse_gke_config(std::string_view text);

// Finds contradictions that do not depend on the machine. read_options calls it too.
Status check(const Options& options);

// Adds the prefix "nvidia.com/" if it is missing. Invalid if the name is not a DNS name or is
// longer than 63 characters.
Result<std::string> resource_name(std::string_view name);

}  // namespace gantry::options

namespace gantry::model {
template <>
inline constexpr std::array<std::string_view, 3> kEnumNames<options::MigStrategy>{"none", "single",
                                                                                  "mixed"};
template <>
inline constexpr std::array<std::string_view, 5> kEnumNames<options::ListStrategy>{
    "envvar", "volume-mounts", "cdi-annotations", "cdi-cri", "direct"};
template <>
inline constexpr std::array<std::string_view, 2> kEnumNames<options::IdStrategy>{"uuid", "index"};
template <>
inline constexpr std::array<std::string_view, 2> kEnumNames<options::SharedPolicy>{"distributed",
                                                                                   "packed"};
template <>
inline constexpr std::array<std::string_view, 4> kEnumNames<options::DiscoveryStrategy>{
    "auto", "nvml", "tegra", "vfio"};
template <>
inline constexpr std::array<std::string_view, 2> kEnumNames<options::MemoryUnit>{"GiB", "MiB"};
template <>
inline constexpr std::array<std::string_view, 2> kEnumNames<options::LogFormat>{"text", "json"};
}  // namespace gantry::model
