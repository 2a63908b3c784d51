// SPDX-License-Identifier: Apache-2.0
#include "sim/package/source_tree.hpp"

#include "base/core/text.hpp"
#include "base/sys/host.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <filesystem>

namespace gantry::sim {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFileBytes = std::size_t{1} << 20;
// What shows that a directory is the source tree.
constexpr std::array<std::string_view, 2> kParts = {"sim/kernel/driver.c",
                                                    "sim/package/files/run-header.sh"};

std::string missing_in(const fs::path& directory) {
  std::error_code failed;
  for (const auto& part : kParts) {
    if (!fs::exists(directory / part, failed)) return std::string(part);
  }
  return "";
}

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

}  // namespace

Result<std::string> find_source_tree(const std::string& given) {
  if (!given.empty()) {
    const auto missing = missing_in(given);
    if (missing.empty()) return given;
    return Error(Errc::NotFound,
                 fmt::format("{} is not Gantry's source tree: it has no {}", given, missing));
  }
  std::error_code failed;
  const auto self = fs::read_symlink("/proc/self/exe", failed);
  for (auto at = self.parent_path(); !failed && at.has_relative_path(); at = at.parent_path()) {
    if (missing_in(at).empty()) return at.string();
  }
  return Error(Errc::NotFound,
               fmt::format("a driver package contains the source of the simulated kernel modules, "
                           "and no directory above {} has it ({}); name Gantry's source tree with "
                           "--source",
                           self.parent_path().string(), fmt::join(kParts, ", ")));
}

Result<std::string> SourceTree::read(std::string_view path) const {
  GANTRY_TRY(const sys::Host host, sys::Host::at("/"));
  std::error_code failed;
  const auto full = fs::absolute(fs::path(directory_) / path, failed).string();
  return host.read(full, kFileBytes).in("the source of a driver package");
}

Result<std::string> SourceTree::kernel_file(std::string_view name) const {
  return read(fmt::format("sim/kernel/{}", name));
}

Result<std::string> SourceTree::package_file(std::string_view name,
                                             const PackageDriver& driver) const {
  GANTRY_TRY(auto text, read(fmt::format("sim/package/files/{}", name)));
  return fill_in(std::move(text),
                 {{"@VERSION@", driver.version},
                  {"@BRANCH@", driver.name},
                  {"@DESCRIPTION@", std::string(kPackageDescription)},
                  {"@MODULES@", fmt::format("{}", fmt::join(driver.modules, " "))},
                  {"@CC_MISMATCH_STATUS@", driver.needs_same_compiler ? "1" : "0"}});
}

std::string fill_in(std::string text,
                    const std::vector<std::pair<std::string_view, std::string>>& values) {
  for (const auto& [name, value] : values) replace_all(text, name, value);
  return text;
}

}  // namespace gantry::sim
