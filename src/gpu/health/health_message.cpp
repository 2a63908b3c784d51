// SPDX-License-Identifier: Apache-2.0
#include "gpu/health/health_message.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace gantry::health {
namespace {

constexpr std::string_view kRemedy = " (remedy: ";
constexpr std::string_view kRemedyEnd = ")";
constexpr std::string_view kSeparator = "; ";
constexpr std::string_view kAll = "all ";

const std::string& device_uuid(const model::DeviceHealth& device) {
  return device.mig.text.empty() ? device.gpu.text : device.mig.text;
}

// A cause or a command may contain the separator too, but then no device follows it.
std::size_t end_of_part(std::string_view message) {
  constexpr std::array<std::string_view, 2> kNames{"GPU-", "MIG-"};
  for (auto at = message.find(kSeparator); at != std::string_view::npos;
       at = message.find(kSeparator, at + 1)) {
    const auto next = message.substr(at + kSeparator.size());
    if (std::any_of(kNames.begin(), kNames.end(),
                    [&](std::string_view name) { return next.starts_with(name); }))
      return at;
  }
  return message.size();
}

std::string remedy_in(std::string_view part) {
  const auto at = part.find(kRemedy);
  if (at == std::string_view::npos) return "";
  part.remove_prefix(at + kRemedy.size());
  return std::string(part.substr(0, part.rfind(kRemedyEnd)));
}

}  // namespace

std::string format_remedy(std::string_view remedy) {
  return remedy.empty() ? "" : fmt::format("{}{}{}", kRemedy, remedy, kRemedyEnd);
}

std::string to_message(const std::vector<model::DeviceHealth>& health) {
  std::map<std::string, std::vector<std::string>> names;  // by problem
  for (const auto& device : health) {
    if (device.usable) continue;
    names[device.cause + format_remedy(device.remedy)].push_back(device_uuid(device));
  }
  std::string text;
  for (const auto& [problem, which] : names) {
    if (!text.empty()) text += kSeparator;
    text += which.size() > 1 && which.size() == health.size()
                ? fmt::format("{}{} GPUs: {}", kAll, which.size(), problem)
                : fmt::format("{}: {}", fmt::join(which, ", "), problem);
  }
  return text;
}

std::optional<DeviceProblem> find_problem(std::string_view message, std::string_view id) {
  while (!message.empty()) {
    const auto end = end_of_part(message);
    const auto part = message.substr(0, end);
    if (contains(part, id) || part.starts_with(kAll))
      return DeviceProblem{.text = std::string(part), .remedy = remedy_in(part)};
    message.remove_prefix(std::min(end + kSeparator.size(), message.size()));
  }
  return std::nullopt;
}

}  // namespace gantry::health
