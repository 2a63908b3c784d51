// SPDX-License-Identifier: Apache-2.0
// K3s and RKE2 write containerd's file from a template at every start, so changes in it are lost.
// They look for nvidia-container-runtime themselves and add it.
#include "base/core/text.hpp"
#include "container/engines/containerd_internal.hpp"

#include <fmt/format.h>

#include <array>

namespace gantry::engines {
namespace {

// The directories that K3s searches, in its order.
constexpr std::array kSearchedPaths{"/usr/local/nvidia/toolkit/nvidia-container-runtime",
                                    "/usr/bin/nvidia-container-runtime"};

// The runtime that K3s finds itself under the name nvidia; nullopt if there is none or it is not
// the requested one.
std::optional<std::string> path_found_by_k3s(const sys::Host& host, const EngineOptions& options) {
  if (options.runtime_name != "nvidia") return std::nullopt;
  for (const std::string path : kSearchedPaths) {
    if (!host.exists(path)) continue;
    const bool wanted = options.runtime_path.empty() || options.runtime_path == path;
    return wanted ? std::optional(path) : std::nullopt;
  }
  return std::nullopt;
}

// containerd 1.x: the template, which is not TOML. Ours is the distribution's template plus our
// tables.
Result<FileChange> template_file(const sys::Host& host, const std::string& path,
                                 const EngineOptions& options, const std::string& program) {
  GANTRY_TRY(auto before, read_optional(host, path));
  const auto table = fmt::format("plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.{}",
                                 toml_edit::to_string({options.runtime_name}));
  FileChange change{.path = path, .before = before, .after = before.value_or("")};
  if (contains(change.after, "[" + table + "]")) return change;
  const auto block = fmt::format(
      "\n[{0}]\n  runtime_type = \"io.containerd.runc.v2\"\n\n[{0}.options]\n  BinaryName = {1}\n",
      table, toml_edit::quote(program));
  if (!before) change.after = "{{ template \"base\" . }}\n";
  if (!change.after.ends_with('\n')) change.after += '\n';
  change.after += block;
  change.keys.push_back({.kind = KeyChange::Kind::Block, .after = block});
  return change;
}

// The default runtime is a setting of the distribution, in its drop-in directory.
Result<FileChange> default_runtime(const sys::Host& host, const EngineOptions& options,
                                   const ContainerdInstall& place) {
  const auto path =
      fmt::format("/etc/rancher/{}/config.yaml.d/99-nvidia.yaml", to_string(place.distribution));
  GANTRY_TRY(auto before, read_optional(host, path));
  return FileChange{.path = path,
                    .before = std::move(before),
                    .after = fmt::format("default-runtime: {}\n", options.runtime_name)};
}

}  // namespace

Result<ChangePlan> plan_rancher(const sys::Host& host, const EngineOptions& options,
                                const ContainerdInstall& place) {
  ChangePlan plan{.engine = Engine::Containerd,
                  .config = place.main,
                  .program = place.program,
                  .restart = place.restart};
  const auto itself = path_found_by_k3s(host, options);
  const auto program = itself                         ? *itself
                       : options.runtime_path.empty() ? installed_path(host, kRuntimePath)
                                                      : options.runtime_path;
  plan.expectation = {options.runtime_name, program, options.set_as_default};
  GANTRY_TRY(const auto generated, TomlFile::open(host, place.main));
  GANTRY_TRY(const auto schema, schema_of(generated.document()).in(place.main));
  if (itself) {
    plan.notes.push_back(fmt::format("{} finds {} at its next start and adds the runtime itself",
                                     to_string(place.distribution), program));
  } else if (schema.value_or(2) >= 3) {
    auto path = options.drop_in.value_or("");
    if (path.empty()) path = place.drop_in;
    GANTRY_TRY(auto file, TomlFile::open(host, path));
    if (!file.exists()) GANTRY_CHECK(file.set({"version"}, fmt::to_string(*schema)));
    auto inner = options;
    inner.set_as_default = false;
    inner.runtime_path = program;
    GANTRY_CHECK(write_runtime(
        file, generated.document(),
        {.host = host, .notes = plan.notes, .schema = *schema, .cri = cri_table(*schema)}, inner));
    plan.files.push_back(std::move(file).change());
  } else {
    GANTRY_TRY(auto file,
               template_file(host, join_path(parent_directory(place.main), "config.toml.tmpl"),
                             options, program));
    plan.files.push_back(std::move(file));
  }
  if (options.set_as_default) {
    GANTRY_TRY(auto file, default_runtime(host, options, place));
    plan.files.push_back(std::move(file));
  }
  if (options.enable_cdi) {
    plan.notes.push_back(fmt::format("{} enables CDI itself", to_string(place.distribution)));
  }
  return plan;
}

// k0s merges the files of containerd.d itself, with every version of containerd.
Result<ChangePlan> plan_k0s(const sys::Host& host, const EngineOptions& options,
                            const ContainerdInstall& place) {
  ChangePlan plan{.engine = Engine::Containerd,
                  .config = place.main,
                  .program = place.program,
                  .restart = place.restart};
  GANTRY_TRY(auto main, TomlFile::open(host, place.main));
  const bool managed = !main.exists() || contains(main.document().text(), "k0s_managed=true");
  const auto version = program_version(options, place.program);
  GANTRY_TRY(const auto stated, schema_of(main.document()).in(place.main));
  const auto schema = stated.value_or(version && version->major >= 2 ? 3 : 2);
  const RuntimeTarget runtime_target{.host = host,
                                     .notes = plan.notes,
                                     .schema = schema,
                                     .cri = cri_table(schema),
                                     .needs_runc = !managed};
  const auto target = managed ? options.drop_in.value_or(place.drop_in) : place.main;
  GANTRY_TRY(auto file, TomlFile::open(host, target.empty() ? place.drop_in : target));
  if (!file.exists()) GANTRY_CHECK(file.set({"version"}, fmt::to_string(schema)));
  GANTRY_TRY(const auto path, write_runtime(file, main.document(), runtime_target, options));
  plan.expectation = {options.runtime_name, path, options.set_as_default};
  plan.files.push_back(std::move(file).change());
  return plan;
}

}  // namespace gantry::engines
