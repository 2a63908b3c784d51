// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig/compute_profiles.hpp"
#include "gpu/mig/profile_table_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace gantry::mig {
namespace {

bool has_attribute(const ProfileName& name, std::string_view attribute) {
  return std::find(name.with.begin(), name.with.end(), attribute) != name.with.end();
}

bool takes_all_media(const ProfileName& name) {
  return has_attribute(name, "me.all");
}

bool has_media_extensions(const ProfileName& name) {
  return has_attribute(name, "me") || takes_all_media(name);
}

bool has_media_engines(const model::MigEngines& engines) {
  return engines.decoder > 0 || engines.encoder > 0 || engines.jpeg > 0 || engines.optical_flow > 0;
}

// The GPU has one set of media extensions, so at most one instance has +me or +me.all. +me.all
// takes every media engine, so beside it only instances without media engines are possible.
std::string broken_media_rule(const ProfileTable& table, const std::vector<unsigned>& counts) {
  unsigned extensions = 0;
  unsigned with_engines = 0;
  std::size_t all = counts.size();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    if (has_media_extensions(table.names[i])) extensions += counts[i];
    if (has_media_engines(table.gpu.profiles[i].engines)) with_engines += counts[i];
    if (takes_all_media(table.names[i])) all = i;
  }
  if (extensions > 1) return "only one instance of a GPU can have media extensions (+me, +me.all)";
  if (all < counts.size() && with_engines > 1) {
    return fmt::format(
        "{} takes all media engines of the GPU, so the other instances must have "
        "none (-me)",
        table.gpu.profiles[all].name);
  }
  return {};
}

unsigned sum_of(const ProfileTable& table, const std::vector<unsigned>& counts,
                unsigned (*value)(const ProfileTable&, std::size_t)) {
  unsigned sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) sum += counts[i] * value(table, i);
  return sum;
}

unsigned compute_of(const ProfileTable& table, std::size_t profile) {
  return table.gpu.profiles[profile].slices;
}

unsigned memory_of(const ProfileTable& table, std::size_t profile) {
  return table.size(profile);
}

// How many places of the profile are free at the same time. Equal sizes: the first free one is
// best.
unsigned free_places(const GpuProfile& profile, SliceMask taken) {
  unsigned count = 0;
  for (const auto& place : profile.places) {
    const auto mask = mask_of(place);
    if ((mask & taken) != 0) continue;
    taken |= mask;
    ++count;
  }
  return count;
}

}  // namespace

SliceMask mask_of(const Placement& place) {
  if (place.start >= kMaxSlices || place.size == 0) return 0;
  const auto ones = place.size >= kMaxSlices ? ~SliceMask{0} : (SliceMask{1} << place.size) - 1;
  return ones << place.start;
}

ProfileTable::ProfileTable(const MigGpu& described) : gpu(described) {
  for (const auto& profile : gpu.profiles) {
    auto name = parse_profile_name(profile.name);
    // A name that cannot be parsed is equal to none that can be asked for.
    names.push_back(name.ok() ? *std::move(name) : ProfileName{.memory_gb = UINT32_MAX});
    compute.push_back(profile.compute.empty() ? usual_compute_profiles(profile) : profile.compute);
    compute_slices = std::max(compute_slices, profile.slices);
    for (const auto& place : profile.places)
      memory_slices = std::max(memory_slices, std::min(place.start + place.size, kMaxSlices));
  }
}

std::optional<std::size_t> ProfileTable::find(const ProfileName& gpu_instance) const {
  const auto at = std::find(names.begin(), names.end(), gpu_instance);
  if (at == names.end()) return std::nullopt;
  return static_cast<std::size_t>(at - names.begin());
}

std::optional<std::size_t> ProfileTable::find_compute(std::size_t profile, unsigned slices) const {
  const auto& all = compute[profile];
  const auto at =
      std::find_if(all.begin(), all.end(), [&](const auto& part) { return part.slices == slices; });
  if (at == all.end()) return std::nullopt;
  return static_cast<std::size_t>(at - all.begin());
}

unsigned ProfileTable::size(std::size_t profile) const {
  const auto& places = gpu.profiles[profile].places;
  return places.empty() ? 0 : places.front().size;
}

std::vector<unsigned> count_profiles(const ProfileTable& table, const InstanceKinds& kinds) {
  std::vector<unsigned> counts(table.names.size());
  for (const auto& kind : kinds) ++counts[kind.profile];
  return counts;
}

bool follows_rules(const ProfileTable& table, const std::vector<unsigned>& counts) {
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > table.gpu.profiles[i].max) return false;
  }
  return sum_of(table, counts, compute_of) <= table.compute_slices &&
         sum_of(table, counts, memory_of) <= table.memory_slices &&
         broken_media_rule(table, counts).empty();
}

std::string broken_rule(const ProfileTable& table, const InstanceKinds& kinds) {
  const auto counts = count_profiles(table, kinds);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto& profile = table.gpu.profiles[i];
    if (counts[i] <= profile.max) continue;
    return fmt::format("{} {} does not fit: the GPU has room for {}", profile.name,
                       counts[i] == 1   ? "once"
                       : counts[i] == 2 ? "twice"
                                        : number_word(counts[i]) + " times",
                       profile.max == 0 ? "none" : number_word(profile.max));
  }
  if (auto reason = broken_media_rule(table, counts); !reason.empty()) return reason;
  if (const auto sum = sum_of(table, counts, compute_of); sum > table.compute_slices) {
    return fmt::format("these instances need {} compute slices; the GPU has {}", sum,
                       table.compute_slices);
  }
  if (const auto sum = sum_of(table, counts, memory_of); sum > table.memory_slices) {
    return fmt::format("these instances need {} memory slices; the GPU has {}", sum,
                       table.memory_slices);
  }
  return {};
}

std::vector<unsigned> room_left(const ProfileTable& table, const std::vector<unsigned>& counts,
                                SliceMask taken) {
  std::vector<std::size_t> order(table.names.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(table.size(a), table.gpu.profiles[a].slices) >
           std::pair(table.size(b), table.gpu.profiles[b].slices);
  });
  const auto used = sum_of(table, counts, compute_of);
  std::vector<unsigned> room;
  for (const auto i : order) {
    const auto& profile = table.gpu.profiles[i];
    const auto slices = profile.slices == 0 ? 0 : (table.compute_slices - used) / profile.slices;
    const auto left = profile.max > counts[i] ? profile.max - counts[i] : 0;
    room.push_back(std::min({slices, left, free_places(profile, taken)}));
  }
  return room;
}

std::string number_word(unsigned number) {
  static constexpr std::array<std::string_view, 11> kWords{
      "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"};
  return number < kWords.size() ? std::string(kWords[number]) : fmt::to_string(number);
}

std::string counted(unsigned number, std::string_view thing) {
  return fmt::format("{} {}{}", number, thing, number == 1 ? "" : "s");
}

}  // namespace gantry::mig
