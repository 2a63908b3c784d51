// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/fault_names.hpp"

#include "base/core/nearest.hpp"
#include "base/core/text.hpp"
#include "base/sys/host.hpp"
#include "sim/driver/image.h"
#include "sim/machine/exports.hpp"
#include "sim/machine/tree.hpp"

#include <fmt/format.h>

#include <algorithm>

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

}  // namespace

Status check_fault_name(const std::string& root, std::string_view name) {
  if (name == "*" || name == "mig") return {};
  if (name.empty() || name.size() >= sizeof(gantry_sim_fault::function))
    return Error(Errc::Invalid, "a fault needs the name of an NVML or CUDA function, mig, or *");
  GANTRY_TRY(const TreeMarker marker, read_marker(root));
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
