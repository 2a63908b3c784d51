// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "container/engines/change_plan_internal.hpp"

namespace gantry::engines {

// One containerd of a machine, and where its administrator may write.
struct ContainerdInstall {
  Distribution distribution = Distribution::Plain;
  std::string main;
  std::string drop_in;
  std::string program;
  std::vector<std::string> restart;
};

// The containerd that the options mean. Invalid, naming them, when there are several and none was
// chosen.
Result<ContainerdInstall> find_containerd(const sys::Host& host, const EngineOptions& options);

// containerd's major and minor version as `--version` says; nullopt when it cannot be asked.
struct ProgramVersion {
  std::uint64_t major = 0;
  std::uint64_t minor = 0;
  auto operator<=>(const ProgramVersion&) const = default;
};
std::optional<ProgramVersion> program_version(const EngineOptions& options,
                                              const std::string& program);

// The CRI plugin's table: its name depends on the file's version (schema).
toml_edit::Path cri_table(std::int64_t schema);

// The schema that a file's text has: its `version`, 1 when it has keys but no version, nullopt when
// it says nothing at all. Unsupported for one we do not know.
Result<std::optional<std::int64_t>> schema_of(const toml_edit::Document& document);

struct RuntimeTarget {
  std::int64_t schema = 2;
  toml_edit::Path cri;
  bool needs_runc = false;  // naming any runtime makes this containerd forget its built-in runc
};

// Our runtime as a copy of the default one in `source` with our program, into `file`.
Result<std::string> write_runtime(TomlFile& file, const toml_edit::Document& source,
                                  const RuntimeTarget& runtime_target,
                                  const EngineOptions& options);

Result<ChangePlan> plan_rancher(const sys::Host& host, const EngineOptions& options,
                                const ContainerdInstall& place);
Result<ChangePlan> plan_k0s(const sys::Host& host, const EngineOptions& options,
                            const ContainerdInstall& place);

}  // namespace gantry::engines
