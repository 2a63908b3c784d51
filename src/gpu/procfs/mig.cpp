// SPDX-License-Identifier: Apache-2.0
#include "gpu/procfs/mig.hpp"

#include "base/core/text.hpp"
#include "gpu/procfs/device_numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>

namespace gantry::procfs {
namespace {

constexpr std::string_view kCapabilities = "/proc/driver/nvidia/capabilities";
constexpr std::size_t kMinorsLimit = std::size_t{1} << 20;
constexpr std::uint64_t kMaxNumber = std::numeric_limits<std::int32_t>::max();

// The numbers of the entries "giNUMBER" of a directory, ascending.
std::vector<std::uint32_t> numbered_entries(const sys::Host& host, std::string_view directory,
                                            std::string_view prefix) {
  std::vector<std::uint32_t> numbers;
  const auto names = host.list(directory);
  if (!names.ok()) return numbers;
  for (const std::string_view name : *names) {
    if (!name.starts_with(prefix)) continue;
    const auto number = parse_u64(name.substr(prefix.size()));
    if (number && *number <= kMaxNumber) numbers.push_back(static_cast<std::uint32_t>(*number));
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::string mig_directory(std::uint32_t minor) {
  return fmt::format("{}/gpu{}/mig", kCapabilities, minor);
}

}  // namespace

std::vector<std::uint32_t> gpu_instances(const sys::Host& host, std::uint32_t minor) {
  return numbered_entries(host, mig_directory(minor), "gi");
}

bool has_mig_instances(const sys::Host& host, std::uint32_t minor) {
  return !gpu_instances(host, minor).empty();
}

std::vector<std::uint32_t> gpus_with_mig_instances(const sys::Host& host) {
  auto minors = numbered_entries(host, kCapabilities, "gpu");
  std::erase_if(minors, [&](std::uint32_t minor) { return !has_mig_instances(host, minor); });
  return minors;
}

std::vector<std::string> list_mig_instances(const sys::Host& host) {
  std::vector<std::string> instances;
  for (const auto minor : numbered_entries(host, kCapabilities, "gpu")) {
    for (const auto gi : gpu_instances(host, minor)) {
      instances.push_back(fmt::format("gpu{}/gi{}", minor, gi));
      const auto inside = fmt::format("{}/gi{}", mig_directory(minor), gi);
      for (const auto ci : numbered_entries(host, inside, "ci")) {
        instances.push_back(fmt::format("gpu{}/gi{}/ci{}", minor, gi, ci));
      }
    }
  }
  return instances;
}

std::vector<std::uint32_t> mig_capability_minors(const sys::Host& host, std::uint32_t minor) {
  std::vector<std::uint32_t> minors;
  const auto text = host.read("/proc/driver/nvidia-caps/mig-minors", kMinorsLimit);
  const auto table = text.ok() ? parse_mig_minors(*text) : Result<MigMinors>(MigMinors{});
  if (!table.ok()) return minors;
  for (const auto& row : table->rows) {
    const bool is_instance =
        row.node == MigMinorKind::GpuInstance || row.node == MigMinorKind::ComputeInstance;
    if (is_instance && row.gpu == minor) minors.push_back(row.minor);
  }
  return minors;
}

}  // namespace gantry::procfs
