// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "container/engines/change_plan_internal.hpp"

namespace gantry::engines {

// One containerd of a machine, and the files that its administrator may write.
struct ContainerdInstall {
  Distribution distribution = Distribution::Plain;
  std::string main;
  std::string drop_in;
  std::string program;
  std::vector<std::string> restart;
};

// The containerd that the options select. Invalid, with a list, if there are several and the
// options select none.
Result<ContainerdInstall> find_containerd(const sys::Host& host, const EngineOptions& options);

// containerd's major and minor version from `--version`; nullopt if it cannot be run.
struct ProgramVersion {
  std::uint64_t major = 0;
  std::uint64_t minor = 0;
  auto operator<=>(const ProgramVersion&) const = default;
};
std::optional<ProgramVersion> program_version(const EngineOptions& options,
                                              const std::string& program);

// The CRI plugin's table: its name depends on the file's version (schema).
toml_edit::Path cri_table(std::int64_t schema);

// The schema of a file: its `version`; 1 if it has keys but no version; nullopt if it is empty.
// Unsupported for an unknown version.
Result<std::optional<std::int64_t>> schema_of(const toml_edit::Document& document);

struct RuntimeTarget {
  const sys::Host& host;
  std::vector<std::string>& notes;  // of the plan
  std::int64_t schema = 2;
  toml_edit::Path cri;
  bool needs_runc = false;  // this containerd drops its built-in runc once any runtime is named
};

// The schema that the names of the plugins' tables belong to, for a file without a version;
// nullopt if they belong to version 1 or to several.
std::optional<std::int64_t> schema_of_tables(const toml_edit::Document& document);

// Writes our runtime into `file`: a copy of the default runtime of `source` with our program.
Result<std::string> write_runtime(TomlFile& file, const toml_edit::Document& source,
                                  const RuntimeTarget& runtime_target,
                                  const EngineOptions& options);

Result<ChangePlan> plan_rancher(const sys::Host& host, const EngineOptions& options,
                                const ContainerdInstall& place);
Result<ChangePlan> plan_k0s(const sys::Host& host, const EngineOptions& options,
                            const ContainerdInstall& place);

}  // namespace gantry::engines
