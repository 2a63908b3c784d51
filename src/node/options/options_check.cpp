// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "container/plan/capabilities.hpp"
#include "node/options/options.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::options {
namespace {

constexpr std::size_t kLongestName = 63;

bool is_label(std::string_view label) {
  const auto inside = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !label.empty() && label.front() != '-' && label.back() != '-' &&
         std::all_of(label.begin(), label.end(), inside);
}

bool is_dns_name(std::string_view name) {
  if (name.empty() || name.front() == '.' || name.back() == '.') return false;
  const auto labels = split(name, '.');
  return std::all_of(labels.begin(), labels.end(), is_label);
}

bool lists_by(const Options& options, ListStrategy strategy) {
  const auto& all = options.list_strategies;
  return std::find(all.begin(), all.end(), strategy) != all.end();
}

Status check_port(std::string_view flag, std::int64_t port) {
  if (port >= 0 && port <= 65535) return {};
  return Error(Errc::Invalid, fmt::format("--{}: {} is not a port number", flag, port));
}

// GPUs that only the kernel (vfio) or the Tegra platform shows are not offered yet.
Status check_discovery(DiscoveryStrategy strategy) {
  if (strategy == DiscoveryStrategy::Tegra) {
    return Error(
        Errc::Unsupported,
        "--device-discovery-strategy=tegra would find the integrated GPU of a Jetson; this "
        "version finds GPUs only through NVML. Write auto or nvml, and use NVIDIA's own "
        "device plugin on Jetson nodes");
  }
  if (strategy == DiscoveryStrategy::Vfio) {
    return Error(
        Errc::Unsupported,
        "--device-discovery-strategy=vfio would offer GPUs that are bound to vfio-pci, for "
        "virtual machines; this version offers only GPUs of the NVIDIA driver. Write auto "
        "or nvml; `use: vm` in gantry.gpus of the file keeps a GPU away from containers");
  }
  return {};
}

// Feature discovery only labels the sharing; it starts no daemon and mounts nothing.
bool needs_mps_root(Program program) {
  return program != Program::MpsDaemon && program != Program::FeatureDiscovery;
}

Status check_mps(const Options& options) {
  if (options.sharing.kind != SharingKind::Mps) return {};
  // In the daemon's own container the directory is fixed.
  if (options.mps_root.empty() && needs_mps_root(options.program)) {
    return Error(Errc::Invalid,
                 "sharing.mps needs --mps-root: the directory of the MPS daemons on the host, "
                 "usually /run/nvidia/mps");
  }
  if (options.mig_strategy == MigStrategy::Mixed) {
    return Error(Errc::Invalid,
                 "sharing.mps and --mig-strategy=mixed exclude each other: MPS does not run on MIG "
                 "instances; use sharing.timeSlicing");
  }
  return {};
}

constexpr std::int64_t kMaxSlots = 1024;  // the kubelet's list of devices must stay below 4 MiB

Status check_shares(const Options& options) {
  const auto& shares = options.shares;
  if (shares.slots < 1 || shares.slots > kMaxSlots) {
    return Error(Errc::Invalid,
                 fmt::format("--share-slots: {} is not between 1 and {}", shares.slots, kMaxSlots));
  }
  if (shares.all && options.sharing.kind != SharingKind::None) {
    return Error(Errc::Invalid,
                 "--share-gpus and `sharing` of the file exclude each other: a GPU is offered "
                 "either in shares, or several times without limits; remove one of them, or name "
                 "the GPUs in gantry.gpus");
  }
  return {};
}

}  // namespace

Result<std::string> resource_name(std::string_view name) {
  std::string full(name);
  if (!name.starts_with(kResourcePrefix)) full = fmt::format("{}{}", kResourcePrefix, name);
  if (full.size() > kLongestName) {
    return Error(Errc::Invalid,
                 fmt::format("resource name `{}` has {} characters; the maximum is {}",
                             full.substr(0, 80), full.size(), kLongestName));
  }
  if (!is_dns_name(std::string_view(full).substr(kResourcePrefix.size()))) {
    return Error(
        Errc::Invalid,
        fmt::format("resource name `{}`: the part after nvidia.com/ may contain only lowercase "
                    "letters, digits, - and ., and must begin and end with a letter or digit",
                    full));
  }
  return full;
}

Status check(const Options& options) {
  if (lists_by(options, ListStrategy::Direct) && options.list_strategies.size() > 1) {
    return Error(Errc::Invalid,
                 "--device-list-strategy: direct gives a container everything it needs and cannot "
                 "be combined with another strategy");
  }
  for (const auto channel : options.imex_channels) {
    if (channel == 0) continue;
    return Error(
        Errc::Invalid,
        fmt::format(
            "--imex-channel-ids: {} is not possible; only channel 0 can be given to containers",
            channel));
  }
  GANTRY_CHECK(check_discovery(options.discovery));
  GANTRY_CHECK(check_mps(options));
  GANTRY_CHECK(check_shares(options));
  GANTRY_CHECK(check_port("gpu-metrics-port", options.gke.metrics_port));
  GANTRY_CHECK(check_port("exporter-port", options.exporter_port));
  const auto capabilities = plan::parse_capabilities(options.direct_capabilities);
  if (!capabilities.ok()) return Error(capabilities.error()).in("--direct-capabilities");
  return {};
}

}  // namespace gantry::options
