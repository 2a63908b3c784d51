// SPDX-License-Identifier: Apache-2.0
#include "sim/fault_names.hpp"

#include "base/text.hpp"
#include "sim/exports.hpp"
#include "sim/image.h"
#include "sim/tree.hpp"
#include "sys/host.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace gantry::sim {
namespace {

std::vector<std::string> functions_in(const sys::Host& host, const std::string& library) {
  std::vector<std::string> names;
  auto bytes = host.read(library, std::size_t{64} << 20U);
  if (!bytes.ok()) return names;
  const auto note = [&](std::string_view name) {
    if (name.starts_with("nvml") || name.starts_with("cu")) names.emplace_back(name);
    return false;  // only looked at
  };
  if (!hide_functions(*bytes, note).ok()) names.clear();
  return names;
}

// Levenshtein's distance, one row at a time.
std::size_t changes_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    auto diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const auto replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest_name(std::string_view name, const std::vector<std::string>& names) {
  const auto wanted = to_lower(name);
  std::string nearest;
  auto least = std::max<std::size_t>(3, name.size() / 3) + 1;
  for (const auto& candidate : names) {
    const auto changes = changes_between(wanted, to_lower(candidate));
    if (changes >= least) continue;
    least = changes;
    nearest = candidate;
  }
  return nearest;
}

Status check_fault_name(const std::string& root, std::string_view name) {
  if (name == "*") return {};
  if (name.empty() || name.size() >= sizeof(gantry_sim_fault::function))
    return Error(Errc::Invalid, "a fault needs the name of an NVML or CUDA function, or *");
  GANTRY_TRY(const Marker marker, read_marker(root));
  GANTRY_TRY(const sys::Host host, sys::Host::at(root));
  auto names = functions_in(host, marker.nvml_library);
  const auto more = functions_in(host, marker.cuda_library);
  names.insert(names.end(), more.begin(), more.end());
  if (names.empty() || std::find(names.begin(), names.end(), name) != names.end()) return {};
  const auto nearest = nearest_name(name, names);
  return Error(Errc::NotFound,
               fmt::format("the driver of {} has no function {}{}", marker.machine, name,
                           nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest)));
}

}  // namespace gantry::sim
