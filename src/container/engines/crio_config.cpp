// SPDX-License-Identifier: Apache-2.0
#include "container/engines/crio_config.hpp"

#include "base/core/text.hpp"
#include "container/engines/change_plan_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::engines {
namespace {

constexpr int kMaxDepth = 8;  // of directories below crio.conf.d

toml_edit::Path runtime_section() {
  return {"crio", "runtime"};
}

Error too_many(const std::string& directory) {
  return Error(Errc::Unsupported,
               fmt::format("{} has more than {} files, or directories deeper than {}; remove those "
                           "that CRI-O does not need",
                           directory, kMaxConfigFiles, kMaxDepth));
}

// CRI-O follows links to files only, so a link to a directory is listed as a file.
Status list_files(const sys::Host& host, const std::string& directory, int depth,
                  std::vector<std::string>& paths) {
  const auto names = host.list(directory);
  if (!names.ok()) return names.error().code() == Errc::NotFound ? Status() : names.error();
  for (const auto& name : *names) {
    auto path = join_path(directory, name);
    const auto info = host.link_info(path);
    if (info.ok() && info->kind == sys::FileKind::Directory) {
      if (depth >= kMaxDepth) return too_many(directory);
      GANTRY_CHECK(list_files(host, path, depth + 1, paths));
      continue;
    }
    if (paths.size() >= kMaxConfigFiles) return too_many(directory);
    paths.push_back(std::move(path));
  }
  return {};
}

// In CRI-O's order: by name in each directory, so `10/z` comes before `10.conf`.
bool comes_before(const std::string& left, const std::string& right) {
  const auto a = split(left, '/');
  const auto b = split(right, '/');
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
}

Result<std::vector<std::string>> paths_in_order(const sys::Host& host, const CrioPaths& paths,
                                                const std::optional<CrioFile>& planned) {
  std::vector<std::string> found;
  GANTRY_CHECK(list_files(host, paths.directory, 0, found).in("reading CRI-O's drop-ins"));
  if (planned && planned->path != paths.main &&
      std::find(found.begin(), found.end(), planned->path) == found.end()) {
    found.push_back(planned->path);
  }
  std::sort(found.begin(), found.end(), comes_before);
  found.insert(found.begin(), paths.main);
  return found;
}

}  // namespace

toml_edit::Path crio_runtime_table(std::string_view name) {
  return runtime_section() / "runtimes" / name;
}

toml_edit::Path crio_default_runtime_key() {
  return runtime_section() / "default_runtime";
}

Result<CrioConfig> CrioConfig::read(const sys::Host& host, const CrioPaths& paths,
                                    std::optional<CrioFile> planned) {
  GANTRY_TRY(const auto in_order, paths_in_order(host, paths, planned));
  std::vector<CrioFile> files;
  for (const auto& path : in_order) {
    if (planned && path == planned->path) {
      files.push_back(*planned);
      continue;
    }
    GANTRY_TRY(auto text, read_optional(host, path));
    if (!text) continue;
    GANTRY_TRY(auto document, toml_edit::Document::parse(*std::move(text)).in(path));
    files.push_back({path, std::move(document)});
  }
  return CrioConfig(std::move(files));
}

const CrioFile* CrioConfig::file_with(const toml_edit::Path& path) const {
  const auto found = std::find_if(files_.rbegin(), files_.rend(),
                                  [&](const CrioFile& file) { return file.document.has(path); });
  return found == files_.rend() ? nullptr : &*found;
}

std::string CrioConfig::default_runtime() const {
  const auto* file = file_with(crio_default_runtime_key());
  return file == nullptr ? "" : file->document.string(crio_default_runtime_key()).value_or("");
}

const CrioFile* CrioConfig::file_with_runtime(std::string_view name) const {
  return file_with(crio_runtime_table(name));
}

std::string CrioConfig::runtime_value(std::string_view name, std::string_view key) const {
  const auto* file = file_with_runtime(name);
  return file == nullptr ? "" : file->document.string(crio_runtime_table(name) / key).value_or("");
}

std::vector<std::string> CrioConfig::runtimes() const {
  std::vector<std::string> names;
  for (const auto& file : files_) {
    for (const auto& name : file.document.members(runtime_section() / "runtimes")) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

std::vector<std::string> CrioConfig::hook_directories() const {
  const auto key = runtime_section() / "hooks_dir";
  const auto* file = file_with(key);
  if (file == nullptr) return {std::string(parent_directory(kHookFile))};
  return file->document.strings(key).value_or(std::vector<std::string>());
}

}  // namespace gantry::engines
