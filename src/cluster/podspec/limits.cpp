// SPDX-License-Identifier: Apache-2.0
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
  if (resource == kGpu) {
    const auto percent = std::clamp<std::uint32_t>(quantity.milli / 10, 1, 99);
    return fmt::format("a part of a GPU is written {}: {} with {}: {} and {}: {}", kGpu,
                       quantity.value + 1, kGpuMemoryPercent, percent, kGpuCores, percent);
  }
  if (resource == kGpuMem)
    return "write whole units; for smaller steps the nodes' agents can count in MiB "
           "(--memory-unit MiB)";
  return "write a whole number";
}

std::string instead_of_suffix(std::string_view resource, const Quantity& quantity) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  const auto mib = quantity.value / kMiB;
  if (resource == kGpuMemory && mib > 0)
    return fmt::format("it counts MiB: write {}: {}", resource, mib);
  if (resource == kGpuMem && mib > 0)
    return fmt::format(
        "it counts the units of the node: write {}: {} where they are GiB, {} where "
        "they are MiB",
        resource, std::max<std::uint64_t>(mib / 1024, 1), mib);
  return "write the number without it";
}

std::uint64_t most_of(std::string_view resource) {
  if (resource == kGpuMem) return kMostUnits;
  if (resource == kGpuMemory) return kMostMib;
  if (resource == kGpuMemoryPercent || resource == kGpuCores) return 100;
  if (resource == kGpuPriority || resource == kSlot) return 1;
  return kMostGpus;
}

std::string beyond(std::string_view resource) {
  if (resource == kGpuPriority) return "it is 0 (high) or 1 (low)";
  if (resource == kSlot)
    return fmt::format("it is 1 for each container that has {}, and written by itself", kGpuMem);
  if (resource == kGpuMemoryPercent || resource == kGpuCores)
    return fmt::format("it is per cent of each GPU: write at most 100, and more GPUs as {}: 2",
                       kGpu);
  return "no machine has that many: is it in bytes?";
}

Result<std::uint64_t> whole(std::string_view resource, const json::Value& value) {
  const auto name = fmt::format("{}: {}", resource, spelling(value));
  GANTRY_TRY(const auto quantity, quantity_of(value).in(resource));
  if (quantity.binary && quantity.value > 0)
    return Error(Errc::Invalid, fmt::format("{} has a suffix of bytes; {}", name,
                                            instead_of_suffix(resource, quantity)));
  if (!quantity.whole())
    return Error(Errc::Invalid, fmt::format("{} is no whole number; {}", name,
                                            instead_of_fraction(resource, quantity)));
  if (quantity.value > most_of(resource))
    return Error(Errc::Invalid, fmt::format("{} is too much; {}", name, beyond(resource)));
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
  return Error(Errc::Invalid, fmt::format("{} has a limit of {} and a request of {}; write the "
                                          "limit alone",
                                          resource, *out, requested));
}

}  // namespace

bool Limits::hami() const {
  return gpu.value_or(0) > 0 || memory_mib.value_or(0) > 0 || memory_percent ||
         cores.value_or(0) > 0;
}

Result<Limits> limits_of(const json::Value& container) {
  const auto resources = container["resources"];
  Limits limits;
  if (!resources["limits"] && !resources["requests"]) return limits;
  GANTRY_CHECK(read(resources, kGpuMem, limits.gpu_mem));
  GANTRY_CHECK(read(resources, kGpuCount, limits.gpu_count));
  GANTRY_CHECK(read(resources, kSlot, limits.slot));
  GANTRY_CHECK(read(resources, kGpu, limits.gpu));
  GANTRY_CHECK(read(resources, kGpuMemory, limits.memory_mib));
  GANTRY_CHECK(read(resources, kGpuMemoryPercent, limits.memory_percent));
  GANTRY_CHECK(read(resources, kGpuCores, limits.cores));
  GANTRY_CHECK(read(resources, kGpuPriority, limits.priority));
  return limits;
}

}  // namespace gantry::podspec
