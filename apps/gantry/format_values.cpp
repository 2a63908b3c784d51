// SPDX-License-Identifier: Apache-2.0
#include "gantry/format_values.hpp"

#include "gpu/model/enum_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gantry::cli {

std::string format_known(const std::string& text) {
  return text.empty() ? "?" : text;
}

std::string format_numa(const std::optional<int>& node) {
  return node ? fmt::to_string(*node) : std::string("unknown");
}

std::string format_mig(const model::Mig& mig) {
  if (mig.current == model::MigMode::Unknown) return "?";
  if (mig.current == model::MigMode::Unsupported) return "-";
  if (mig.current == model::MigMode::Disabled) return "off";
  // Only NVML knows the pending mode, and only NVML can list the instances.
  if (mig.instances.empty() && mig.pending == model::MigMode::Unknown) return "on, instances ?";
  return fmt::format("on, {} instance{}", mig.instances.size(),
                     mig.instances.size() == 1 ? "" : "s");
}

std::string format_health(const model::Health& health) {
  const auto reasons = fmt::format("{}", fmt::join(health.reasons, "; "));
  const auto with = [&](std::string_view word) {
    return reasons.empty() ? std::string(word) : fmt::format("{}: {}", word, reasons);
  };
  switch (health.state) {
    case model::HealthState::Ok: return "ok";
    case model::HealthState::Degraded: return with("degraded");
    case model::HealthState::Lost: return with("lost");
    case model::HealthState::Unknown: break;
  }
  return with("unknown");
}

std::string format_memory(const std::optional<std::uint64_t>& bytes) {
  return bytes ? fmt::format("{} MiB", *bytes >> 20U) : std::string("?");
}

std::string format_link(const model::Link& link) {
  if (link.nvlinks > 0) return fmt::format("NV{}", link.nvlinks);
  if (link.pcie == model::PciePath::Self) return "X";
  if (link.pcie == model::PciePath::Unknown) return "-";
  return std::string(model::to_string(link.pcie));
}

std::string format_capabilities(const model::DriverFile& file) {
  std::vector<std::string_view> words;
  words.reserve(file.capabilities.size());
  for (auto capability : file.capabilities) words.push_back(model::to_string(capability));
  return fmt::format("{}", fmt::join(words, ","));
}

std::string format_file_kind(model::DriverFileKind kind) {
  return std::string(model::to_string(kind));
}

std::string format_module_flavour(model::ModuleFlavour flavour) {
  switch (flavour) {
    case model::ModuleFlavour::Open: return "open kernel modules";
    case model::ModuleFlavour::Proprietary: return "proprietary kernel modules";
    case model::ModuleFlavour::Unknown: break;
  }
  return "kernel modules of unknown flavour";
}

}  // namespace gantry::cli
