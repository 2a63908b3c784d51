// SPDX-License-Identifier: Apache-2.0
// containerd's own files. New versions merge the tables of a drop-in with those of the main file.
// In old versions, a plugin table of a drop-in replaces the whole table of the main file; there,
// and if the version is unknown, our keys go into the file that already has the table.
// docs/decisions/0006 has the measurements.
#include "base/core/text.hpp"
#include "container/engines/containerd_internal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gantry::engines {
namespace {

bool merges_tables(const std::optional<ProgramVersion>& version) {
  return version && version->major >= 2;
}

// The files that an import names: a pattern in its last part, relative to the importing file.
std::vector<std::string> imported(const sys::Host& host, const std::string& main,
                                  const toml_edit::Document& document) {
  std::vector<std::string> paths;
  for (auto pattern : document.strings({"imports"}).value_or(std::vector<std::string>())) {
    if (!pattern.starts_with('/')) pattern = join_path(parent_directory(main), pattern);
    const auto directory = parent_directory(pattern);
    const auto names = host.list(directory);
    if (!names.ok()) continue;
    for (const auto& name : *names) {
      const auto path = join_path(directory, name);
      if (glob_match(base_name(pattern), name) && paths.size() < kMaxConfigFiles &&
          std::find(paths.begin(), paths.end(), path) == paths.end()) {
        paths.push_back(path);
      }
    }
  }
  return paths;
}

bool imports_cover(const TomlFile& main, const std::string& drop_in) {
  for (auto pattern : main.document().strings({"imports"}).value_or(std::vector<std::string>())) {
    if (!pattern.starts_with('/')) pattern = join_path(parent_directory(main.path()), pattern);
    if (parent_directory(pattern) == parent_directory(drop_in) && glob_match(pattern, drop_in))
      return true;
  }
  return false;
}

// The configuration that containerd prints, if it was asked; otherwise the main file.
Result<toml_edit::Document> ask_containerd(const EngineOptions& options,
                                           const ContainerdInstall& place) {
  if (!options.run) {
    return Error(Errc::Unsupported, "containerd cannot be run here; use --config-source=file");
  }
  GANTRY_TRY(const auto text, options.run({place.program, "--config", place.main, "config", "dump"})
                                  .in("asking containerd for its configuration"));
  return toml_edit::Document::parse(without_log(text)).in("containerd config dump");
}

// The file whose CRI table is effective if tables replace each other: the last one that has it.
Result<TomlFile> owner_of_table(const sys::Host& host, const TomlFile& main,
                                const toml_edit::Path& cri, std::vector<std::string>& notes) {
  auto owner = main;
  for (const auto& path : imported(host, main.path(), main.document())) {
    GANTRY_TRY(auto file, TomlFile::open(host, path));
    if (file.document().has(cri)) owner = std::move(file);
  }
  if (owner.path() != main.path()) {
    notes.push_back(fmt::format("{} replaces the CRI table of {}, so the change is made there",
                                owner.path(), main.path()));
  }
  return owner;
}

void add_warnings(const toml_edit::Document& main, ChangePlan& plan) {
  for (const auto& name : main.strings({"disabled_plugins"}).value_or(std::vector<std::string>())) {
    if (name == "cri" || name == cri_table(2)[1] || name == cri_table(3)[1]) {
      plan.notes.push_back(fmt::format(
          "{} disables CRI (disabled_plugins): a kubelet cannot use this containerd", plan.config));
    }
  }
}

// containerd reads a file without a version as version 1, where these names mean nothing.
void note_ignored_tables(const toml_edit::Document& main, ChangePlan& plan) {
  if (main.has({"version"})) return;
  for (const auto& name : main.members({"plugins"})) {
    if (!name.starts_with("io.containerd.")) continue;
    plan.notes.push_back(fmt::format(
        "{} has no `version`, so containerd reads it as version 1 and ignores [plugins.\"{}\"]",
        plan.config, name));
  }
}

// NVIDIA's program sorts the keys. Only a file of plain keys is sorted: elsewhere the order may be
// the administrator's.
std::string sorted_keys(const std::string& text) {
  auto keys = lines(text);
  const bool plain = std::all_of(keys.begin(), keys.end(), [](std::string_view line) {
    const auto equals = line.find(" = ");
    return equals != std::string_view::npos && line.find_first_of("[#\"' ") >= equals;
  });
  if (!plain) return text;
  std::sort(keys.begin(), keys.end());
  return fmt::format("{}\n", fmt::join(keys, "\n"));
}

std::int64_t new_schema(const std::optional<ProgramVersion>& version) {
  return version && version->major >= 2 ? 3 : 2;
}

// If the engine replaces whole tables, a separate file must contain the whole table.
Status carry_table(const toml_edit::Document& source, const toml_edit::Path& cri, TomlFile& file,
                   ChangePlan& plan) {
  GANTRY_CHECK(copy_values(source, cri, file, cri, {}));
  plan.notes.push_back(fmt::format(
      "this containerd does not merge tables: {} contains a copy of the CRI table, and later "
      "changes of that table in {} have no effect",
      file.path(), plan.config));
  return {};
}

Result<ChangePlan> plan_files(const sys::Host& host, const EngineOptions& options,
                              const ContainerdInstall& place) {
  ChangePlan plan{.engine = Engine::Containerd,
                  .config = place.main,
                  .program = place.program,
                  .restart = place.restart};
  GANTRY_TRY(auto main, TomlFile::open(host, place.main));
  const auto version = program_version(options, place.program);
  GANTRY_TRY(auto stated, schema_of(main.document()).in(place.main));
  const auto meant = schema_of_tables(main.document());
  if (meant) {
    stated.reset();
    plan.notes.push_back(
        fmt::format("{0} has no `version`, so containerd ignored its version {1} tables. Gantry "
                    "adds `version = {1}`, and containerd will use them",
                    place.main, *meant));
  } else {
    note_ignored_tables(main.document(), plan);
  }
  const auto schema = stated.value_or(meant.value_or(new_schema(version)));
  const auto cri = cri_table(schema);
  add_warnings(main.document(), plan);
  if (schema == 1 && version && version->major >= 2) {
    return Error(
        Errc::Unsupported,
        fmt::format("{} has version 1 (or no version), which containerd 2 neither reads nor "
                    "converts; `containerd config default` prints a new configuration",
                    place.main));
  }

  const bool merges = merges_tables(version);
  auto drop_in = options.drop_in.value_or(merges ? place.drop_in : "");
  if (schema == 1 && !drop_in.empty()) {
    plan.notes.emplace_back("configuration version 1 has no drop-ins: the main file is changed");
    drop_in.clear();
  }
  if (!stated) GANTRY_CHECK(main.set({"version"}, fmt::to_string(schema)));
  const RuntimeTarget runtime_target{
      .host = host, .notes = plan.notes, .schema = schema, .cri = cri, .needs_runc = !merges};

  std::string path;
  if (drop_in.empty()) {
    GANTRY_TRY(auto file, merges ? Result<TomlFile>(std::move(main))
                                 : owner_of_table(host, main, cri, plan.notes));
    GANTRY_TRY(const auto source,
               options.query_engine ? ask_containerd(options, place) : Result(file.document()));
    GANTRY_TRY(path, write_runtime(file, source, runtime_target, options));
    plan.files.push_back(std::move(file).change());
  } else {
    if (!imports_cover(main, drop_in)) {
      GANTRY_CHECK(main.add_to_list({"imports"}, join_path(parent_directory(drop_in), "*.toml")));
    }
    GANTRY_TRY(auto file, TomlFile::open(host, drop_in));
    GANTRY_TRY(const auto source,
               options.query_engine ? ask_containerd(options, place) : Result(main.document()));
    if (!file.exists()) GANTRY_CHECK(file.set({"version"}, fmt::to_string(schema)));
    if (!merges) GANTRY_CHECK(carry_table(source, cri, file, plan));
    GANTRY_TRY(path, write_runtime(file, source, runtime_target, options));
    // Writes the drop-in first: the main file must not import a file that does not exist yet.
    plan.files.push_back(std::move(file).change());
    plan.files.push_back(std::move(main).change());
    if (options.sort_keys && plan.files.back().changes())
      plan.files.back().after = sorted_keys(plan.files.back().after);
  }
  plan.expectation = {options.runtime_name, path, options.set_as_default};
  return plan;
}

}  // namespace

Result<ChangePlan> plan_containerd(const sys::Host& host, const EngineOptions& options) {
  if (options.mode == IntegrationMode::Hook) {
    return Error(Errc::Unsupported, "containerd has no hooks.d; omit --config-mode=oci-hook");
  }
  GANTRY_TRY(const auto place, find_containerd(host, options));
  switch (place.distribution) {
    case Distribution::K3s:
    case Distribution::Rke2: return plan_rancher(host, options, place);
    case Distribution::K0s: return plan_k0s(host, options, place);
    default: return plan_files(host, options, place);
  }
}

}  // namespace gantry::engines
