// SPDX-License-Identifier: Apache-2.0
#include "sim/package/package_driver.hpp"

#include "base/core/text.hpp"
#include "sim/machine/machine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace gantry::sim {
namespace {

constexpr std::uint32_t kFirstWithPeermem = 470;
constexpr std::uint32_t kFirstWithOpenModules = 515;
constexpr std::uint32_t kFirstWithCompilerWarning = 535;

// Of drivers that somebody's notes show.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kBuilds = {{
    {"430.26", "Tue Jun  4 17:40:52 CDT 2019"},
    {"460.56", "Tue Feb 23 23:31:16 UTC 2021"},
}};

std::string build_of(std::string_view version, std::uint32_t branch) {
  for (const auto& [known, build] : kBuilds)
    if (known == version) return std::string(build);
  return branch < kFirstWithOpenModules ? "(simulated)" : "Release Build  (simulated)";
}

// It becomes part of paths, of YAML and of C.
bool is_version(std::string_view text) {
  const auto parts = split(text, '.');
  return !parts.empty() && parts.size() <= 3 && text.size() <= 20 &&
         std::ranges::all_of(parts, all_digits);
}

}  // namespace

Result<PackageDriver> find_package_driver(std::string_view wanted) {
  if (!is_version(wanted)) {
    return Error(Errc::Invalid,
                 fmt::format("\"{}\" is not a driver version such as 580.159.04", wanted));
  }
  const auto branches = driver_branches();
  const std::string name(wanted.substr(0, wanted.find('.')));
  if (std::ranges::find(branches, name) == branches.end()) {
    return Error(Errc::NotFound, fmt::format("there is no simulated driver of branch {}; there are "
                                             "{}",
                                             name, fmt::join(branches, ", ")));
  }
  PackageDriver driver{.version = std::string(wanted), .name = name};
  if (wanted == name) {
    GANTRY_TRY(const auto machine, all_cards(name));
    driver.version = machine.driver.version;
  }
  driver.branch = static_cast<std::uint32_t>(parse_u64(name).value_or(0));
  driver.build = build_of(driver.version, driver.branch);
  driver.modules = {"nvidia", "nvidia-uvm", "nvidia-modeset", "nvidia-drm"};
  if (driver.branch >= kFirstWithPeermem) driver.modules.emplace_back("nvidia-peermem");
  driver.open = driver.branch >= kFirstWithOpenModules;
  driver.needs_same_compiler = driver.branch < kFirstWithCompilerWarning;
  return driver;
}

std::string package_name(const PackageDriver& driver) {
  return fmt::format("NVIDIA-Linux-x86_64-{}", driver.version);
}

}  // namespace gantry::sim
