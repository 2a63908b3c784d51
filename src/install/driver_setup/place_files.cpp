// SPDX-License-Identifier: Apache-2.0
#include "install/driver_setup/place_files.hpp"

#include "base/core/text.hpp"
#include "base/json/document.hpp"
#include "base/json/writer.hpp"
#include "gpu/loader/elf.hpp"

#include <fmt/format.h>

#include <set>

namespace gantry::driver_setup {
namespace {

constexpr std::uint64_t kListFormat = 1;
constexpr std::size_t kListLimit = std::size_t{8} << 20;
constexpr std::size_t kMostFiles = 20'000;
constexpr std::string_view kLibraryDirectory = "lib64/";

bool is_inside(std::string_view path) {
  if (path.empty() || path.front() == '/' || path.size() > 1024) return false;
  for (const auto part : split(path, '/')) {
    if (part.empty() || part == "." || part == "..") return false;
  }
  return true;
}

// The name by which programs ask for a library that is directly in lib64; "" if the file is no
// library or is found by its own name.
std::string soname_of(const sys::Host& host, const std::string& unpacked, const PlacedFile& file) {
  const std::string_view path = file.path;
  if (!path.starts_with(kLibraryDirectory) || !file.link.empty()) return "";
  const auto name = path.substr(kLibraryDirectory.size());
  if (contains(name, "/")) return "";
  const auto fd = host.open(fmt::format("{}/{}", unpacked, file.from), O_RDONLY | O_NONBLOCK);
  if (!fd.ok()) return "";
  const auto elf = loader::Elf::open(fd->get());
  if (!elf.ok()) return "";
  auto soname = elf->soname();
  if (!soname.ok() || *soname == name || !is_inside(*soname) || contains(*soname, "/")) return "";
  return *soname;
}

// nvidia-installer leaves these links to ldconfig, which nothing runs in a directory of our own.
void add_soname_links(const sys::Host& host, const std::string& unpacked,
                      std::vector<PlacedFile>& files) {
  std::set<std::string, std::less<>> paths;
  for (const auto& file : files) paths.insert(file.path);
  std::vector<PlacedFile> links;
  for (const auto& file : files) {
    const auto soname = soname_of(host, unpacked, file);
    auto path = fmt::format("{}{}", kLibraryDirectory, soname);
    if (soname.empty() || !paths.insert(path).second) continue;
    links.push_back({.path = std::move(path), .link = std::string(base_name(file.path))});
  }
  files.insert(files.end(), links.begin(), links.end());
}

Status copy_files(const sys::Host& host, std::vector<PlacedFile>& files,
                  const std::string& unpacked, const std::string& partial,
                  InstallEffects& effects) {
  std::set<std::string, std::less<>> made;
  for (auto& file : files) {
    const auto to = fmt::format("{}/{}", partial, file.path);
    std::string directory(parent_directory(to));
    if (made.insert(directory).second) GANTRY_CHECK(effects.make_directory(directory));
    if (!file.link.empty()) {
      GANTRY_CHECK(effects.make_link(to, file.link));
      continue;
    }
    const auto from = fmt::format("{}/{}", unpacked, file.from);
    GANTRY_TRY(const auto info, host.link_info(from).in("the archive is not complete"));
    if (info.kind != sys::FileKind::Regular)
      return Error(Errc::Corrupt, fmt::format("{} in the archive is not a file", file.from));
    file.bytes = info.size;
    GANTRY_CHECK(effects.copy(from, to, file.mode));
  }
  return {};
}

bool is_as_listed(const sys::Host& host, const std::string& directory, const PlacedFile& file) {
  const auto path = fmt::format("{}/{}", directory, file.path);
  if (!file.link.empty()) return host.link(path).value_or("") == file.link;
  const auto info = host.link_info(path);
  return info.ok() && info->kind == sys::FileKind::Regular && info->size == file.bytes;
}

}  // namespace

std::string to_json(const std::vector<PlacedFile>& files) {
  json::Writer out(json::Layout::Spaced);
  out.object([&] {
    out.member("format", kListFormat);
    out.rows("files", files, [&](const PlacedFile& file) {
      out.object([&] {
        out.member("path", file.path);
        if (file.link.empty()) {
          out.member("bytes", file.bytes);
        } else {
          out.member("link", file.link);
        }
      });
    });
  });
  return std::move(out).text() + "\n";
}

Result<std::vector<PlacedFile>> parse_file_list(std::string text) {
  GANTRY_TRY(const auto document, json::Document::parse(std::move(text)));
  const auto listed = document["files"];
  if (document["format"].u64() != kListFormat || listed.size() > kMostFiles)
    return Error(Errc::Corrupt, "it is not a list of files");
  std::vector<PlacedFile> files;
  for (const auto value : listed) {
    PlacedFile file{.path = value["path"].string_or_empty(),
                    .link = value["link"].string_or_empty(),
                    .bytes = value["bytes"].u64().value_or(0)};
    if (!is_inside(file.path)) return Error(Errc::Corrupt, "a path in the list is not valid");
    files.push_back(std::move(file));
  }
  return files;
}

Result<std::string> find_damage(const sys::Host& host, const std::string& directory,
                                const std::string& list) {
  GANTRY_TRY(auto text, host.read(list, kListLimit));
  GANTRY_TRY(const auto files, parse_file_list(std::move(text)).in(list));
  for (const auto& file : files) {
    if (!is_as_listed(host, directory, file)) return fmt::format("{}/{}", directory, file.path);
  }
  return std::string();
}

Status place_files(const sys::Host& host, const std::vector<PlacedFile>& files,
                   const std::string& unpacked, const std::string& partial,
                   const std::string& directory, InstallEffects& effects) {
  auto placed = files;
  add_soname_links(host, unpacked, placed);
  GANTRY_CHECK(effects.remove_tree(partial));
  GANTRY_CHECK(effects.make_directory(partial));
  GANTRY_CHECK(copy_files(host, placed, unpacked, partial, effects));
  GANTRY_CHECK(effects.save(partial + "/files.json", to_json(placed), 0644));
  GANTRY_CHECK(effects.sync(partial));
  return effects.rename(partial, directory);
}

}  // namespace gantry::driver_setup
