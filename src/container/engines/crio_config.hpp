// SPDX-License-Identifier: Apache-2.0
// CRI-O's configuration as CRI-O itself reads it: the main file, then every file below the
// directory of drop-ins, hidden files and subdirectories included. A later file replaces single
// keys, but a runtime's table is replaced as a whole.
#pragma once

#include "base/sys/host.hpp"
#include "base/toml_edit/document.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::engines {

constexpr std::string_view kCrioConfig = "/etc/crio/crio.conf";
constexpr std::string_view kCrioDirectory = "/etc/crio/crio.conf.d";

// What CRI-O is started with: --config and --config-dir.
struct CrioPaths {
  std::string main{kCrioConfig};
  std::string directory{kCrioDirectory};
};

struct CrioFile {
  std::string path;
  toml_edit::Document document;
};

class CrioConfig {
 public:
  // `planned` takes the place of the file of that path, which need not exist yet. Corrupt, with the
  // file, if CRI-O could not read one; Unsupported if there are too many.
  static Result<CrioConfig> read(const sys::Host& host, const CrioPaths& paths,
                                 std::optional<CrioFile> planned = std::nullopt);
  explicit CrioConfig(std::vector<CrioFile> files) : files_(std::move(files)) {}

  // The file that decides about a key: the last one that has it. nullptr if no file has it.
  const CrioFile* file_with(const toml_edit::Path& path) const;

  std::string default_runtime() const;  // "" if no file names one
  const CrioFile* file_with_runtime(std::string_view name) const;
  // One key of a runtime; "" if the runtime does not have it.
  std::string runtime_value(std::string_view name, std::string_view key) const;
  std::vector<std::string> runtimes() const;  // that files name, in the order of the files

  // Where CRI-O reads hooks. Not empty unless a file says so.
  std::vector<std::string> hook_directories() const;

 private:
  std::vector<CrioFile> files_;
};

toml_edit::Path crio_runtime_table(std::string_view name);
toml_edit::Path crio_default_runtime_key();

}  // namespace gantry::engines
