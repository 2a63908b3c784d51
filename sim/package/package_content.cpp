// SPDX-License-Identifier: Apache-2.0
#include "sim/package/package_content.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace gantry::sim {
namespace {

constexpr std::uint32_t kOwnersModes = 0755;  // no set-user-id bit inside the archive

void add_directories(std::vector<tar::ArchiveFile>& files) {
  std::set<std::string> directories;
  for (const auto& file : files) {
    for (auto slash = file.name.find('/'); slash != std::string::npos;
         slash = file.name.find('/', slash + 1))
      directories.insert(file.name.substr(0, slash + 1));
  }
  for (const auto& name : directories) files.push_back({.name = name, .mode = 0755});
}

}  // namespace

void PackageContent::add(std::string path, std::string content, std::uint32_t mode,
                         std::string_view kind) {
  lines_ += fmt::format("{} {:04o} {}\n", path, mode, kind);
  add_unlisted(path.starts_with("./") ? path.substr(2) : std::move(path), std::move(content),
               mode & kOwnersModes);
}

void PackageContent::add_link(std::string_view name, std::string_view kind) {
  lines_ += fmt::format("{} 0000 {}\n", name, kind);
}

void PackageContent::add_unlisted(std::string path, std::string content, std::uint32_t mode) {
  files_.push_back({.name = std::move(path), .content = std::move(content), .mode = mode});
}

std::vector<tar::ArchiveFile> PackageContent::files(const PackageDriver& driver) const {
  auto all = files_;
  all.push_back({.name = ".manifest",
                 .content = fmt::format("{}\n{}\n \n{}\n \n \n \n \n{}", kPackageDescription,
                                        driver.version, fmt::join(driver.modules, " "), lines_)});
  add_directories(all);
  std::ranges::sort(all, {}, &tar::ArchiveFile::name);
  return all;
}

}  // namespace gantry::sim
