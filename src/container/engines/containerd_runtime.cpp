// SPDX-License-Identifier: Apache-2.0
#include "container/engines/containerd_internal.hpp"

#include <fmt/format.h>

namespace gantry::engines {
namespace {

constexpr std::string_view kShim = "io.containerd.runc.v2";
constexpr std::string_view kCdiAnnotations = "cdi.k8s.io/*";
constexpr std::string_view kOldShim = "io.containerd.runtime.v1.linux";

// The runtime whose options we copy: the default one, else one of the usual ones.
std::optional<std::string> model_runtime(const toml_edit::Document& source,
                                         const toml_edit::Path& containerd,
                                         const std::string& ours) {
  const auto chosen = source.string(containerd / "default_runtime_name").value_or("");
  for (const auto& name : {chosen, std::string("runc"), std::string("crun")}) {
    if (!name.empty() && name != ours && source.has(containerd / "runtimes" / name)) return name;
  }
  return std::nullopt;
}

// Schema 1 may still have the table `default_runtime`, which overrides default_runtime_name.
Status set_old_default(TomlFile& file, const toml_edit::Path& containerd, const std::string& path) {
  const auto table = containerd / "default_runtime";
  const auto type = file.document().string(table / "runtime_type");
  if (!type || type->empty()) return {};
  if (*type == kOldShim) GANTRY_CHECK(file.set_text(table / "runtime_engine", path));
  GANTRY_CHECK(file.set_text(table / "options" / "BinaryName", path));
  return file.set_text(table / "options" / "Runtime", path);
}

Status keep_runc(TomlFile& file, const toml_edit::Document& source,
                 const toml_edit::Path& containerd, const std::string& ours) {
  for (const auto& name : source.members(containerd / "runtimes")) {
    if (name != ours) return {};
  }
  if (source.has(containerd / "default_runtime")) return {};
  return file.set_text(containerd / "runtimes" / "runc" / "runtime_type", kShim);
}

// Without this, containerd does not pass the kubelet's annotations with CDI devices to the runtime.
// The device plugin's strategy cdi-annotations needs it if containerd itself has no CDI.
Status pass_annotations(TomlFile& file, const toml_edit::Path& key) {
  auto patterns = file.document().strings(key).value_or(std::vector<std::string>());
  for (const auto& pattern : patterns) {
    if (pattern == "*" || pattern == kCdiAnnotations) return {};
  }
  patterns.emplace_back(kCdiAnnotations);
  return file.set(key, toml_edit::quote(patterns));
}

}  // namespace

toml_edit::Path cri_table(std::int64_t schema) {
  if (schema <= 1) return {"plugins", "cri"};
  return {"plugins", schema == 2 ? "io.containerd.grpc.v1.cri" : "io.containerd.cri.v1.runtime"};
}

Result<std::optional<std::int64_t>> schema_of(const toml_edit::Document& document) {
  if (document.members({}).empty()) return std::optional<std::int64_t>();
  const auto version = document.integer({"version"}).value_or(document.has({"version"}) ? 0 : 1);
  if (version < 1 || version > 4) {
    return Error(Errc::Unsupported,
                 fmt::format("its version is {}; supported versions are 1, 2, 3 and 4",
                             document.raw({"version"}).value_or("")));
  }
  return std::optional(version);
}

std::optional<std::int64_t> schema_of_tables(const toml_edit::Document& document) {
  if (document.has({"version"})) return std::nullopt;
  std::optional<std::int64_t> schema;
  for (const auto& name : document.members({"plugins"})) {
    if (!name.starts_with("io.containerd.")) return std::nullopt;
    const std::int64_t of_this = name.starts_with("io.containerd.cri.v1.") ? 3 : 2;
    schema = std::max(schema.value_or(of_this), of_this);
  }
  return schema;
}

Result<std::string> write_runtime(TomlFile& file, const toml_edit::Document& source,
                                  const RuntimeTarget& runtime_target,
                                  const EngineOptions& options) {
  const auto containerd = runtime_target.cri / "containerd";
  const auto& name = options.runtime_name;
  const auto runtime = containerd / "runtimes" / name;
  if (runtime_target.needs_runc) GANTRY_CHECK(keep_runc(file, source, containerd, name));
  const auto model = model_runtime(source, containerd, name);
  const auto from = containerd / "runtimes" / model.value_or("");
  const bool is_new = !file.document().has(runtime);
  auto type = file.document().string(runtime / "runtime_type").value_or("");
  if (type.empty() && model) type = source.string(from / "runtime_type").value_or("");
  if (type.empty()) type = kShim;
  GANTRY_CHECK(file.set_text(runtime / "runtime_type", type));
  if (model && is_new) {
    GANTRY_CHECK(copy_values(
        source, from, file, runtime,
        {from / "runtime_type", from / "options" / "BinaryName", from / "options" / "Runtime"}));
  }
  if (runtime_target.schema != 1 && options.pass_cdi_annotations)
    GANTRY_CHECK(pass_annotations(file, runtime / "container_annotations"));
  const auto known = file.document().string(runtime / "options" / "BinaryName").value_or("");
  const auto path = options.runtime_path.empty() ? keep_program(runtime_target.host, known,
                                                                kRuntimePath, runtime_target.notes)
                                                 : options.runtime_path;
  if (type == kOldShim) GANTRY_CHECK(file.set_text(runtime / "runtime_engine", path));
  GANTRY_CHECK(file.set_text(runtime / "options" / "BinaryName", path));
  if (runtime_target.schema == 1)
    GANTRY_CHECK(file.set_text(runtime / "options" / "Runtime", path));
  if (options.set_as_default) {
    GANTRY_CHECK(file.set_text(containerd / "default_runtime_name", name));
    GANTRY_CHECK(set_old_default(file, containerd, path));
  }
  if (options.enable_cdi) GANTRY_CHECK(file.set(runtime_target.cri / "enable_cdi", "true"));
  return path;
}

}  // namespace gantry::engines
