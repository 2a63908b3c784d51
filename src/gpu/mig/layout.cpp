// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig/layout.hpp"

#include "base/core/printable.hpp"
#include "base/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace gantry::mig {
namespace {

constexpr std::size_t kMaxLayoutBytes = 4096;
constexpr unsigned kMaxSlice = 64;

Error wrong_item(std::string_view item, std::string_view why) {
  return {Errc::Invalid, fmt::format("\"{}\": {}", printable(item.substr(0, 80)), why)};
}

// Takes "2x" off the front of "2x1g.18gb".
Result<unsigned> take_count(std::string_view item, std::string_view& rest) {
  const auto end = rest.find('x');
  if (end == std::string_view::npos || !all_digits(rest.substr(0, end))) return 1U;
  const auto count = parse_u64(rest.substr(0, end));
  if (!count || *count == 0 || *count > kMaxRequestedInstances) {
    return wrong_item(item,
                      fmt::format("the number of instances is 1 to {}", kMaxRequestedInstances));
  }
  rest.remove_prefix(end + 1);
  return static_cast<unsigned>(*count);
}

Result<std::vector<unsigned>> read_slices(std::string_view item, std::string_view text) {
  std::vector<unsigned> slices;
  if (text == "0") return std::vector<unsigned>{0};
  for (const auto part : split(text, '+')) {
    const auto number = all_digits(part) ? parse_u64(part) : std::nullopt;
    if (!number || *number == 0 || *number > kMaxSlice)
      return wrong_item(item, "after = come compute slices, such as =1+2");
    slices.push_back(static_cast<unsigned>(*number));
  }
  if (slices.size() == 1) {
    const auto profile = item.substr(0, item.find_first_of("@="));
    return wrong_item(item, fmt::format("=N could mean N instances or N compute slices; write "
                                        "{0}x{1} or {0}c.{1}",
                                        slices[0], profile));
  }
  if (slices.empty()) return wrong_item(item, "after = come compute slices, such as =1+2");
  return slices;
}

Result<RequestedInstance> read_item(std::string_view item) {
  RequestedInstance instance;
  auto rest = item;
  GANTRY_TRY(instance.count, take_count(item, rest));
  const auto equals = rest.find('=');
  if (equals != std::string_view::npos) {
    GANTRY_TRY(instance.compute_slices, read_slices(item, rest.substr(equals + 1)));
    rest = rest.substr(0, equals);
  }
  const auto at = rest.find('@');
  if (at != std::string_view::npos) {
    const auto text = rest.substr(at + 1);
    const auto start = all_digits(text) ? parse_u64(text) : std::nullopt;
    if (!start || *start >= kMaxSlice)
      return wrong_item(item, "after @ comes the first memory slice, such as @4");
    if (instance.count != 1) return wrong_item(item, "only one instance can begin at a slice");
    instance.start = static_cast<unsigned>(*start);
    rest = rest.substr(0, at);
  }
  GANTRY_TRY(instance.profile, parse_profile_name(rest));
  if (!instance.profile.whole() && !instance.compute_slices.empty())
    return wrong_item(item, "the name already says how many compute slices there are");
  return instance;
}

std::string item_words(const RequestedInstance& instance) {
  auto text = to_string(instance.profile);
  if (instance.count != 1) text = fmt::format("{}x{}", instance.count, text);
  if (instance.start) text += fmt::format("@{}", *instance.start);
  if (!instance.compute_slices.empty())
    text += fmt::format("={}", fmt::join(instance.compute_slices, "+"));
  return text;
}

unsigned total_count(const LayoutRequest& request) {
  return std::accumulate(request.instances.begin(), request.instances.end(), 0U,
                         [](unsigned sum, const auto& item) { return sum + item.count; });
}

Status check_total(const LayoutRequest& request) {
  if (total_count(request) <= kMaxRequestedInstances) return {};
  return Error(Errc::Invalid,
               fmt::format("more than {} instances are asked of one GPU", kMaxRequestedInstances));
}

RequestedInstance request_of(const GpuInstance& instance, ProfileName name) {
  RequestedInstance request{.profile = std::move(name), .start = instance.place.start};
  if (instance.compute.size() == 1) {
    const auto compute = parse_profile_name(instance.compute[0].profile);
    if (compute.ok()) request.profile.compute_slices = compute->compute_slices;
    return request;
  }
  if (instance.compute.empty()) request.compute_slices = {0};
  for (const auto& compute : instance.compute) {
    const auto profile = parse_profile_name(compute.profile);
    if (profile.ok()) request.compute_slices.push_back(profile->compute_slices);
  }
  return request;
}

}  // namespace

Result<LayoutRequest> parse_layout(std::string_view words) {
  if (words.size() > kMaxLayoutBytes) return Error(Errc::Invalid, "the layout is too long");
  words = trim(words);
  LayoutRequest request;
  if (words == "on" || words == "all-enabled") return request;
  if (words == "off" || words == "all-disabled") {
    request.enabled = false;
    return request;
  }
  if (words.empty()) {
    return Error(Errc::Invalid, "the layout is empty")
        .advise(
            "write instances such as 3g.71gb,2x1g.18gb, `on` for MIG mode without instances, "
            "or `off`");
  }
  for (const auto item : split(words, ',')) {
    // "1g.18gb+me,gfx" is one name with two attributes, but no GPU has such a profile.
    GANTRY_TRY(auto instance, read_item(trim(item)));
    request.instances.push_back(std::move(instance));
  }
  GANTRY_CHECK(check_total(request));
  return request;
}

std::string to_words(const LayoutRequest& request) {
  if (!request.enabled) return "off";
  if (request.instances.empty()) return "on";
  std::string text;
  for (const auto& instance : request.instances) {
    if (!text.empty()) text += ',';
    text += item_words(instance);
  }
  return text;
}

Result<LayoutRequest> request_from_counts(const ProfileCounts& counts) {
  LayoutRequest request;
  for (const auto& [name, count] : counts) {
    GANTRY_TRY(auto profile, parse_profile_name(name));
    if (count == 0) continue;
    if (count > kMaxRequestedInstances) {
      return Error(Errc::Invalid, fmt::format("{} {} times: at most {} instances can be asked of "
                                              "one GPU",
                                              name, count, kMaxRequestedInstances));
    }
    request.instances.push_back({.profile = std::move(profile), .count = count});
  }
  // Large instances first, as people write them.
  std::stable_sort(request.instances.begin(), request.instances.end(),
                   [](const auto& a, const auto& b) {
                     return std::pair(a.profile.gpu_slices, a.profile.compute_slices) >
                            std::pair(b.profile.gpu_slices, b.profile.compute_slices);
                   });
  GANTRY_CHECK(check_total(request));
  return request;
}

ProfileCounts current_counts(const MigGpu& gpu) {
  ProfileCounts counts;
  for (const auto& instance : gpu.instances) {
    for (const auto& compute : instance.compute) {
      const auto name = parse_profile_name(compute.profile);
      ++counts[name.ok() ? to_string(*name) : compute.profile];
    }
  }
  return counts;
}

LayoutRequest current_layout(const MigGpu& gpu) {
  LayoutRequest request{.enabled = gpu.current == model::MigMode::Enabled};
  if (!request.enabled) return request;
  for (const auto& instance : gpu.instances) {
    auto name = parse_profile_name(instance.profile);
    if (name.ok()) request.instances.push_back(request_of(instance, *std::move(name)));
  }
  return request;
}

}  // namespace gantry::mig
