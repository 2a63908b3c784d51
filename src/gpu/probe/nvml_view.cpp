// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/nvml_view.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::probe {
namespace {

struct PartName {
  std::string_view name;
  bool NvmlParts::*member;
};
constexpr std::array kPartNames{PartName{"load", &NvmlParts::load},
                                PartName{"processes", &NvmlParts::processes},
                                PartName{"links", &NvmlParts::links}};

}  // namespace

std::string to_argument(const NvmlParts& parts) {
  std::string text;
  for (const auto& [name, member] : kPartNames) {
    if (parts.*member) text += fmt::format("{}{}", text.empty() ? "" : ",", name);
  }
  return text;
}

NvmlParts parts_from_argument(std::string_view text) {
  NvmlParts parts;
  const auto words = split(text, ',');
  for (const auto& [name, member] : kPartNames)
    parts.*member = std::find(words.begin(), words.end(), name) != words.end();
  return parts;
}

std::string to_bytes(const NvmlView& view) {
  return fmt::format("{} {}", static_cast<unsigned>(view.failure),
                     model::to_json(view.inventory, model::JsonLayout::Compact));
}

Result<NvmlView> nvml_view_from(std::string_view bytes) {
  const auto space = bytes.find(' ');
  const auto failure = parse_u64(bytes.substr(0, space));
  if (space == std::string_view::npos || !failure)
    return Error(Errc::Corrupt, "the answer does not start with a code of NVML");
  NvmlView view;
  GANTRY_TRY(view.inventory, model::inventory_from_json(bytes.substr(space + 1)));
  // A driver may have newer codes, and a library in the child may overwrite the child's memory.
  view.failure =
      *failure <= NVML_ERROR_UNKNOWN ? static_cast<nvmlReturn_t>(*failure) : NVML_ERROR_UNKNOWN;
  return view;
}

}  // namespace gantry::probe
