// SPDX-License-Identifier: Apache-2.0
#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "install/driver_package/run_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::driver_package {
namespace {

constexpr std::string_view kPrefix = "NVIDIA-Linux-";

// Longest first: "aarch64-sbsa" is no name of NVIDIA's, but "x86_64" begins with "x86".
constexpr std::array<std::string_view, 5> kArchitectures = {"x86_64", "aarch64", "ppc64le",
                                                            "armv7l", "x86"};

// "-grid", "-grid-aws", "-vgpu-kvm", "-vgpu-kvm-aie", "-no-compat32", "-custom", "-pkg1": what
// follows the version.
bool is_suffix(std::string_view text) {
  return text.size() <= 64 && std::ranges::all_of(text, [](char c) {
           return is_digit(c) || (c >= 'a' && c <= 'z') || c == '-' || c == '.' || c == '_';
         });
}

RunKind kind_by_suffix(std::string_view suffix) {
  for (const auto word : split(suffix, '-')) {
    if (word == "grid") return RunKind::GuestDriver;
    if (word == "vgpu") return RunKind::VgpuHost;
  }
  return RunKind::Driver;
}

}  // namespace

std::string_view to_string(RunKind kind) {
  switch (kind) {
    case RunKind::Driver: return "driver";
    case RunKind::GuestDriver: return "guest driver (GRID)";
    case RunKind::VgpuHost: return "vGPU host driver";
  }
  return "driver";
}

bool is_driver_version(std::string_view text) {
  if (text.empty() || text.size() > 20) return false;
  const auto parts = split(text, '.');
  return parts.size() >= 2 && parts.size() <= 3 && std::ranges::all_of(parts, all_digits);
}

Result<RunName> parse_run_name(std::string_view name) {
  const Error bad(Errc::Invalid,
                  fmt::format("{}: not a name like NVIDIA-Linux-x86_64-580.159.04.run",
                              printable(name.substr(0, 200))));
  auto rest = base_name(name);
  if (rest.ends_with(".run")) rest.remove_suffix(4);
  if (!rest.starts_with(kPrefix)) return bad;
  rest.remove_prefix(kPrefix.size());
  RunName found;
  for (const auto architecture : kArchitectures) {
    if (!rest.starts_with(architecture) || rest.substr(architecture.size(), 1) != "-") continue;
    found.architecture = architecture;
    rest.remove_prefix(architecture.size() + 1);
    break;
  }
  if (found.architecture.empty()) return bad;
  const auto dash = rest.find('-');
  found.version = rest.substr(0, dash);
  const auto suffix = dash == std::string_view::npos ? std::string_view() : rest.substr(dash);
  if (!is_driver_version(found.version) || !is_suffix(suffix)) return bad;
  found.kind = kind_by_suffix(suffix);
  return found;
}

std::string run_file_name(const RunName& name) {
  const std::string_view suffix = name.kind == RunKind::GuestDriver ? "-grid"
                                  : name.kind == RunKind::VgpuHost  ? "-vgpu-kvm"
                                                                    : "";
  return fmt::format("{}{}-{}{}.run", kPrefix, name.architecture, name.version, suffix);
}

}  // namespace gantry::driver_package
