// SPDX-License-Identifier: Apache-2.0
#include "cluster/podspec/quantity.hpp"
#include "cluster/scheduler/cluster_cache_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::scheduler {
namespace {

constexpr std::string_view kMemoryQuota = "gantry.dev/gpu-memory-quota";
constexpr std::string_view kComputeQuota = "gantry.dev/gpu-compute-quota";

// The stricter of two limits; 0 means no limit.
std::uint64_t tighter(std::uint64_t a, std::uint64_t b) {
  if (a == 0 || b == 0) return std::max(a, b);
  return std::min(a, b);
}

Error no_quantity(std::string_view where, std::string_view key, std::string_view text) {
  return {Errc::Invalid, fmt::format("{}: {}: \"{}\" is not an amount and is ignored; write 80Gi "
                                     "for memory, a whole number for compute (100 is one GPU)",
                                     where, key, text)};
}

// A limit of 0 means no limit here, so a quota of 0 is stored as 1, which no request fits.
std::uint64_t limit_of(std::uint64_t value) {
  return std::max<std::uint64_t>(value, 1);
}

Status read_limit(const json::Value& value, std::string_view where, std::string_view key,
                  std::optional<std::uint64_t> (*parse)(std::string_view), std::uint64_t& limit) {
  if (!value) return {};
  const auto text = value.string().value_or(std::string(value.raw()));
  const auto parsed = parse(text);
  if (!parsed) return no_quantity(where, key, text);
  limit = tighter(limit, limit_of(*parsed));
  return {};
}

std::optional<std::uint64_t> count_of(std::string_view text) {
  const auto quantity = podspec::parse_quantity(text);
  if (!quantity.ok()) return std::nullopt;
  return quantity->value;
}

// With a unit: bytes. Without a unit: MiB, as for nvidia.com/gpumem.
std::optional<std::uint64_t> mib_of(std::string_view text) {
  const auto count = count_of(text);
  if (!count) return std::nullopt;
  const bool bare = text.find_first_not_of("0123456789") == std::string_view::npos;
  return bare ? *count : *count >> 20;
}

}  // namespace

Status ClusterCache::set_namespace(const json::Value& name_space) {
  const auto name = name_space["metadata"]["name"].string().value_or("");
  const auto annotations = name_space["metadata"]["annotations"];
  const auto where = fmt::format("namespace {}", name);
  placement::Quota quota;
  auto memory = read_limit(annotations[kMemoryQuota], where, kMemoryQuota, mib_of, quota.mib);
  auto compute =
      read_limit(annotations[kComputeQuota], where, kComputeQuota, count_of, quota.cores);
  {
    const std::lock_guard hold(mutex_);
    quotas_[name].own = quota;
    apply_quota(name);
  }
  GANTRY_CHECK(std::move(memory));
  return compute;
}

void ClusterCache::remove_namespace(std::string_view name) {
  const std::lock_guard hold(mutex_);
  const auto found = quotas_.find(name);
  if (found == quotas_.end()) return;
  found->second.own = {};
  apply_quota(std::string(name));
}

// HAMi's quotas: spec.hard, in MiB and percent, with the prefix of ResourceQuotas. The API server
// writes 20000 as "20k", which is a count, not bytes.
Status ClusterCache::set_resource_quota(const json::Value& quota) {
  const auto name_space = quota["metadata"]["namespace"].string().value_or("");
  const auto name = quota["metadata"]["name"].string().value_or("");
  const auto where = fmt::format("ResourceQuota {}/{}", name_space, name);
  placement::Quota limits;
  Status first;
  for (const std::string_view prefix : {"limits.", "requests."}) {
    for (const auto key : {podspec::kHamiGpuMem, podspec::kHamiGpuCores}) {
      const auto full = fmt::format("{}{}", prefix, key);
      auto& limit = key == podspec::kHamiGpuMem ? limits.mib : limits.cores;
      auto read = read_limit(quota["spec"]["hard"][full], where, full, count_of, limit);
      if (!read.ok() && first.ok()) first = std::move(read);
    }
  }
  const std::lock_guard hold(mutex_);
  auto& quotas = quotas_[name_space].quotas;
  if (limits.mib == 0 && limits.cores == 0) {
    quotas.erase(name);
  } else {
    quotas[name] = limits;
  }
  apply_quota(name_space);
  return first;
}

void ClusterCache::remove_resource_quota(std::string_view name_space, std::string_view name) {
  const std::lock_guard hold(mutex_);
  const auto found = quotas_.find(name_space);
  if (found == quotas_.end() || found->second.quotas.erase(std::string(name)) == 0) return;
  apply_quota(std::string(name_space));
}

void ClusterCache::apply_quota(const std::string& name_space) {
  auto& quota = quotas_[name_space];
  placement::Quota all = quota.own;
  for (const auto& [name, one] : quota.quotas) {
    all.mib = tighter(all.mib, one.mib);
    all.cores = tighter(all.cores, one.cores);
  }
  const bool same = all.mib == quota.effective.mib && all.cores == quota.effective.cores;
  quota.effective = all;
  if (all.mib == 0 && all.cores == 0) quotas_.erase(name_space);  // namespaces come and go
  if (same) return;
  cluster_.set_quota(name_space, all);
  ++generation_;
}

std::vector<ClusterCache::QuotaView> ClusterCache::quotas() const {
  const std::lock_guard hold(mutex_);
  std::vector<QuotaView> views;
  for (const auto& [name, quota] : quotas_) {
    if (quota.effective.mib != 0 || quota.effective.cores != 0)
      views.push_back({.name_space = name, .limit = quota.effective});
  }
  return views;
}

}  // namespace gantry::scheduler
