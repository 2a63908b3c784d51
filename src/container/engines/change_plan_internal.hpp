// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/toml_edit/document.hpp"
#include "container/engines/change_plan.hpp"

namespace gantry::engines {

constexpr std::string_view kRuntimeProgram = "nvidia-container-runtime";
constexpr std::string_view kRuntimePath = "/usr/bin/nvidia-container-runtime";
constexpr std::string_view kHookPath = "/usr/bin/nvidia-container-runtime-hook";
constexpr std::string_view kHookFile = "/usr/share/containers/oci/hooks.d/oci-nvidia-hook.json";
constexpr std::size_t kMaxConfigFiles = 64;  // that an engine imports or reads from a directory

// The word of a table of pairs that belongs to the value; "" if there is none.
template <class Table, class Value>
std::string_view name_in_table(const Table& table, Value value) {
  for (const auto& [other, word] : table) {
    if (other == value) return word;
  }
  return "";
}

Result<ChangePlan> plan_docker(const sys::Host& host, const EngineOptions& options);
Result<ChangePlan> plan_containerd(const sys::Host& host, const EngineOptions& options);
Result<ChangePlan> plan_crio(const sys::Host& host, const EngineOptions& options);
Result<ChangePlan> plan_podman(const sys::Host& host, const EngineOptions& options);

// The classic hook for every container, as a file of hooks.d in one of the directories that the
// engine reads; `plan` gets the change, and a note for what would keep the hook from running.
Status add_hook(const sys::Host& host, const EngineOptions& options,
                const std::vector<std::string>& directories, ChangePlan& plan);

// The program where a package puts it, or below /usr/local if only the tar has been unpacked there.
std::string installed_path(const sys::Host& host, std::string_view usual);

// The program of a runtime that an engine already has: kept if it exists, because the administrator
// may have had a reason. Otherwise `usual`, with a note. A name without a directory is kept.
std::string keep_program(const sys::Host& host, const std::string& program, std::string_view usual,
                         std::vector<std::string>& notes);

// The output of an engine's program, without the lines of its log.
std::string without_log(std::string_view output);

// nullopt if the file does not exist.
Result<std::optional<std::string>> read_optional(const sys::Host& host, const std::string& path);

// A TOML file that is being changed: records the old value of each key.
class TomlFile {
 public:
  static Result<TomlFile> open(const sys::Host& host, std::string path);
  static Result<TomlFile> from(std::string path, std::optional<std::string> text);

  bool exists() const { return before_.has_value(); }
  const std::string& path() const { return path_; }
  const toml_edit::Document& document() const { return document_; }

  Status set(const toml_edit::Path& path, std::string_view raw);
  Status set_text(const toml_edit::Path& path, std::string_view text);
  Status add_to_list(const toml_edit::Path& path, const std::string& text);

  FileChange change() &&;

 private:
  TomlFile(std::string path, std::optional<std::string> before, toml_edit::Document document)
      : path_(std::move(path)), before_(std::move(before)), document_(std::move(document)) {}
  std::string path_;
  std::optional<std::string> before_;
  toml_edit::Document document_;
  std::vector<KeyChange> keys_;
};

// Copies all values below `from` in one document to `to` in another file, except the named ones.
Status copy_values(const toml_edit::Document& source, const toml_edit::Path& from, TomlFile& file,
                   const toml_edit::Path& to, const std::vector<toml_edit::Path>& except);

toml_edit::Path operator/(toml_edit::Path path, std::string_view part);

}  // namespace gantry::engines
