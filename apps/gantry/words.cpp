// SPDX-License-Identifier: Apache-2.0
#include "gantry/words.hpp"

#include "gpu/model/words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gantry::cli {

std::string known_word(const std::string& text) {
  return text.empty() ? "?" : text;
}

std::string numa_word(const std::optional<int>& node) {
  return node ? fmt::to_string(*node) : std::string("unknown");
}

std::string mig_word(const model::Mig& mig) {
  if (mig.current == model::MigMode::Unknown) return "?";
  if (mig.current == model::MigMode::Unsupported) return "-";
  if (mig.current == model::MigMode::Disabled) return "off";
  return fmt::format("on, {} instance{}", mig.instances.size(),
                     mig.instances.size() == 1 ? "" : "s");
}

std::string health_word(const model::Health& health) {
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

std::string memory_word(const std::optional<std::uint64_t>& bytes) {
  return bytes ? fmt::format("{} MiB", *bytes >> 20U) : std::string("?");
}

std::string link_word(const model::Link& link) {
  if (link.nvlinks > 0) return fmt::format("NV{}", link.nvlinks);
  if (link.pcie == model::PciePath::Self) return "X";
  if (link.pcie == model::PciePath::Unknown) return "-";
  return std::string(model::to_word(link.pcie));
}

std::string capability_words(const model::DriverFile& file) {
  std::vector<std::string_view> words;
  words.reserve(file.capabilities.size());
  for (auto capability : file.capabilities) words.push_back(model::to_word(capability));
  return fmt::format("{}", fmt::join(words, ","));
}

std::string kind_word(model::FileKind kind) {
  return std::string(model::to_word(kind));
}

std::string flavour_word(model::ModuleFlavour flavour) {
  switch (flavour) {
    case model::ModuleFlavour::Open: return "open kernel modules";
    case model::ModuleFlavour::Proprietary: return "proprietary kernel modules";
    case model::ModuleFlavour::Unknown: break;
  }
  return "kernel modules of unknown flavour";
}

}  // namespace gantry::cli
