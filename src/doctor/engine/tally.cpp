// SPDX-License-Identifier: Apache-2.0
#include "doctor/engine/tally.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>

namespace gantry::doctor {
namespace {

constexpr std::size_t kMaxNames = 8;
constexpr std::size_t kMaxValuesInCommand = 64;

std::string replaced(std::string_view pattern, std::string_view value) {
  std::string out;
  for (const char c : pattern) {
    if (c == '@') {
      out += value;
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string join_names(const std::vector<std::string>& names) {
  if (names.size() == 1) return names.front();
  if (names.size() > kMaxNames) {
    return fmt::format("{} and {} more", fmt::join(std::span(names).first(kMaxNames), ", "),
                       names.size() - kMaxNames);
  }
  if (names.empty()) return "";
  return fmt::format("{} and {}", fmt::join(std::span(names).first(names.size() - 1), ", "),
                     names.back());
}

std::string command_for(const std::vector<std::string>& values, std::string_view pattern) {
  if (values.size() == 1) return replaced(pattern, values.front());
  const auto shown = std::min(values.size(), kMaxValuesInCommand);
  auto text = fmt::format("for d in {}; do {}; done",
                          fmt::join(std::span(values).first(shown), " "), replaced(pattern, "$d"));
  if (shown < values.size()) text += fmt::format("  # and {} more", values.size() - shown);
  return text;
}

void Tally::found(std::string name, Evidence evidence, std::string key) {
  keys.push_back(key.empty() ? name : std::move(key));
  names.push_back(std::move(name));
  bad.push_back(std::move(evidence));
}

std::string gpu_label(const model::Gpu& gpu) {
  return fmt::format("GPU {} ({})", gpu.index, gpu.pci.sysfs());
}

}  // namespace gantry::doctor
