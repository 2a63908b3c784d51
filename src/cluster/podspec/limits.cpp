// SPDX-License-Identifier: Apache-2.0
#include "base/core/bytes.hpp"
#include "base/core/printable.hpp"
#include "cluster/podspec/limits_internal.hpp"
#include "cluster/podspec/quantity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace gantry::podspec {
namespace {

std::string spelling(const json::Value& value) {
  return printable(value.string().value_or(std::string(value.raw())).substr(0, 64));
}

std::string instead_of_fraction(std::string_view resource, const Quantity& quantity) {
  if (resource == kNvidiaGpu) {
    const auto percent = std::clamp<std::uint32_t>(quantity.milli / 10, 1, 99);
    return fmt::format("for a part of a GPU write {}: {} with {}: {} and {}: {}", kNvidiaGpu,
                       quantity.value + 1, kHamiGpuMemPercentage, percent, kHamiGpuCores, percent);
  }
  if (resource == kAliyunGpuMem)
    return "write whole units; for smaller steps the nodes' agents can count in MiB "
           "(--memory-unit MiB)";
  return "write a whole number";
}

std::string instead_of_suffix(std::string_view resource, const Quantity& quantity) {
  const auto mib = quantity.value / kMiB;
  if (resource == kHamiGpuMem && mib > 0)
    return fmt::format("it counts MiB: write {}: {}", resource, mib);
  if (resource == kAliyunGpuMem && mib > 0)
    return fmt::format(
        "it counts the units of the node: write {}: {} where they are GiB, {} where "
        "they are MiB",
        resource, std::max<std::uint64_t>(mib / 1024, 1), mib);
  return "write the number without the suffix";
}

std::uint64_t max_of(std::string_view resource) {
  if (resource == kAliyunGpuMem) return kMaxMemoryUnits;
  if (resource == kHamiGpuMem) return kMaxMemoryMib;
  if (resource == kHamiGpuMemPercentage || resource == kHamiGpuCores) return 100;
  if (resource == kHamiPriority || resource == kShareSlot) return 1;
  return kMaxGpusPerContainer;
}

std::string beyond(std::string_view resource) {
  if (resource == kHamiPriority) return "it is 0 (high) or 1 (low)";
  if (resource == kShareSlot)
    return fmt::format("it is 1 for each container that has {}, and is written automatically",
                       kAliyunGpuMem);
  if (resource == kHamiGpuMemPercentage || resource == kHamiGpuCores)
    return fmt::format(
        "it is a percentage of each GPU: write at most 100, and ask for more GPUs with {}: 2",
        kNvidiaGpu);
  return "no machine has that many; the number may be in bytes";
}

Result<std::uint64_t> whole(std::string_view resource, const json::Value& value) {
  const auto name = fmt::format("{}: {}", resource, spelling(value));
  GANTRY_TRY(const auto quantity, read_quantity(value).in(resource));
  if (quantity.binary && quantity.value > 0)
    return Error(Errc::Invalid, fmt::format("{} has a suffix for bytes", name))
        .advise(instead_of_suffix(resource, quantity));
  if (!quantity.whole())
    return Error(Errc::Invalid, fmt::format("{} is not a whole number", name))
        .advise(instead_of_fraction(resource, quantity));
  if (quantity.value > max_of(resource))
    return Error(Errc::Invalid, fmt::format("{} is too much", name)).advise(beyond(resource));
  return quantity.value;
}

Status read(const json::Value& resources, std::string_view resource,
            std::optional<std::uint64_t>& out) {
  const auto limit = resources["limits"][resource];
  const auto request = resources["requests"][resource];
  if (!limit && !request) return {};
  GANTRY_TRY(out, whole(resource, limit ? limit : request));
  if (!limit || !request) return {};
  GANTRY_TRY(const auto requested, whole(resource, request));
  if (requested == *out) return {};
  return Error(Errc::Invalid,
               fmt::format("{} has a limit of {} and a request of {}", resource, *out, requested))
      .advise("write the limit alone");
}

}  // namespace

bool GpuLimits::hami() const {
  return gpu.value_or(0) > 0 || memory_mib.value_or(0) > 0 || memory_percent ||
         cores.value_or(0) > 0;
}

Result<GpuLimits> parse_limits(const json::Value& container) {
  const auto resources = container["resources"];
  GpuLimits limits;
  if (!resources["limits"] && !resources["requests"]) return limits;
  GANTRY_CHECK(read(resources, kAliyunGpuMem, limits.gpu_mem));
  GANTRY_CHECK(read(resources, kAliyunGpuCount, limits.gpu_count));
  GANTRY_CHECK(read(resources, kShareSlot, limits.slot));
  GANTRY_CHECK(read(resources, kNvidiaGpu, limits.gpu));
  GANTRY_CHECK(read(resources, kHamiGpuMem, limits.memory_mib));
  GANTRY_CHECK(read(resources, kHamiGpuMemPercentage, limits.memory_percent));
  GANTRY_CHECK(read(resources, kHamiGpuCores, limits.cores));
  GANTRY_CHECK(read(resources, kHamiPriority, limits.priority));
  return limits;
}

std::string shorten(std::string_view value) {
  return printable(value.substr(0, 64));
}

}  // namespace gantry::podspec
