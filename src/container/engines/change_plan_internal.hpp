// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/toml_edit/document.hpp"
#include "container/engines/change_plan.hpp"

namespace gantry::engines {

constexpr std::string_view kRuntimeProgram = "nvidia-container-runtime";
constexpr std::string_view kRuntimePath = "/usr/bin/nvidia-container-runtime";
constexpr std::string_view kHookPath = "/usr/bin/nvidia-container-runtime-hook";

Result<ChangePlan> plan_docker(const sys::Host& host, const EngineOptions& options);
Result<ChangePlan> plan_containerd(const sys::Host& host, const EngineOptions& options);
Result<ChangePlan> plan_crio(const sys::Host& host, const EngineOptions& options);
Result<ChangePlan> plan_podman(const sys::Host& host, const EngineOptions& options);

// The JSON file for hooks.d: the classic hook for every container.
FileChange hook_file(const EngineOptions& options, std::optional<std::string> before,
                     std::string path);

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
