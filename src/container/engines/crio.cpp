// SPDX-License-Identifier: Apache-2.0
// CRI-O: a drop-in with our runtime, or the classic hook.
#include "base/core/text.hpp"
#include "container/engines/change_plan_internal.hpp"
#include "container/engines/crio_config.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::engines {
namespace {

constexpr std::string_view kDropIn = "99-nvidia.toml";
constexpr std::string_view kVmType = "vm";
constexpr std::string_view kInherit = "inherit_default_runtime";

struct CrioTarget {
  CrioPaths paths;
  std::string file;  // that we change
};

// A drop-in elsewhere is for a CRI-O that is started with another --config-dir.
CrioTarget target_of(const EngineOptions& options) {
  CrioTarget target;
  if (!options.config.empty()) target.paths.main = options.config;
  target.file = options.drop_in.value_or(join_path(kCrioDirectory, kDropIn));
  if (target.file.empty()) target.file = target.paths.main;
  const bool usual = target.file == target.paths.main ||
                     target.file.starts_with(fmt::format("{}/", kCrioDirectory));
  if (!usual) target.paths.directory = parent_directory(target.file);
  return target;
}

std::string program_of(const EngineOptions& options) {
  return options.executable.empty() ? std::string("crio") : options.executable;
}

// crio fails on a --config that does not exist, but not if the usual file is missing.
std::vector<std::string> command_that_shows(const sys::Host& host, const EngineOptions& options,
                                            const CrioTarget& target) {
  const auto& paths = target.paths;
  std::vector<std::string> words{program_of(options)};
  const bool there = host.exists(paths.main) || target.file == paths.main;
  if (paths.main != kCrioConfig && there) words.insert(words.end(), {"--config", paths.main});
  if (paths.directory != kCrioDirectory)
    words.insert(words.end(), {"--config-dir", paths.directory});
  words.emplace_back("config");
  return words;
}

Result<CrioConfig> ask_crio(const EngineOptions& options) {
  if (!options.run)
    return Error(Errc::Unsupported, "crio cannot be run here; use --config-source=file");
  auto text = options.run({program_of(options), "status", "config"});
  if (!text.ok()) text = options.run({"crio-status", "config"});
  GANTRY_TRY(const auto answer, std::move(text).in("asking CRI-O for its configuration"));
  GANTRY_TRY(auto document,
             toml_edit::Document::parse(without_log(answer)).in("crio status config"));
  return CrioConfig({{"crio status config", std::move(document)}});
}

bool runs_oci_programs(const CrioConfig& config, const std::string& name) {
  return config.runtime_value(name, "runtime_type") != kVmType;
}

// The runtime whose options ours gets: the default one, unless it runs no OCI program (kata). ""
// if no file names one, so that CRI-O's built-in defaults are used.
std::string runtime_to_copy(const CrioConfig& config, const std::string& ours,
                            std::vector<std::string>& notes) {
  auto chosen = config.default_runtime();
  std::vector<std::string> candidates{chosen, "crun", "runc"};
  if (!chosen.empty() && chosen != ours) {
    if (config.file_with_runtime(chosen) == nullptr) return "";
    if (runs_oci_programs(config, chosen)) return chosen;
    notes.push_back(fmt::format(
        "the default runtime {} starts virtual machines, so its options are not copied", chosen));
    const auto others = config.runtimes();
    candidates.insert(candidates.end(), others.begin(), others.end());
  }
  for (const auto& name : candidates) {
    if (name == ours || config.file_with_runtime(name) == nullptr) continue;
    if (runs_oci_programs(config, name)) return name;
  }
  return "";
}

// A runtime of ours in another file would be replaced, table for table, so it is copied whole. Of
// another runtime, what names its own programs is left out.
Status copy_runtime(const CrioConfig& config, const EngineOptions& options, TomlFile& file,
                    std::vector<std::string>& notes) {
  const auto ours = crio_runtime_table(options.runtime_name);
  if (const auto* known = config.file_with_runtime(options.runtime_name); known != nullptr) {
    notes.push_back(fmt::format("{} has the runtime {}; it is copied to {}, which replaces it",
                                known->path, options.runtime_name, file.path()));
    return copy_values(known->document, ours, file, ours, {});
  }
  const auto model = runtime_to_copy(config, options.runtime_name, notes);
  if (model.empty()) return {};
  const auto from = crio_runtime_table(model);
  return copy_values(config.file_with_runtime(model)->document, from, file, ours,
                     {from / "runtime_path", from / "platform_runtime_paths", from / kInherit});
}

// CRI-O runs our program only as an OCI runtime: under conmon (oci) or conmon-rs (pod).
Status set_type(TomlFile& file, const EngineOptions& options) {
  const auto table = crio_runtime_table(options.runtime_name);
  const auto type = file.document().string(table / "runtime_type").value_or("");
  if (type == kVmType) {
    return Error(Errc::Exists, fmt::format("the runtime {} of {} starts virtual machines",
                                           options.runtime_name, file.path()))
        .advise("choose another name with --nvidia-runtime-name");
  }
  if (type.empty()) GANTRY_CHECK(file.set_text(table / "runtime_type", "oci"));
  // CRI-O would replace our program by that of the default runtime.
  if (file.document().raw(table / kInherit) == "true") return file.set(table / kInherit, "false");
  return {};
}

Status refuse(const CrioFile& later, std::string_view key, const CrioTarget& target) {
  return Error(Errc::Exists,
               fmt::format("{} sets {}, and CRI-O reads it after {}", later.path, key, target.file))
      .advise(fmt::format("remove it there, or choose a later name: --drop-in-config={}",
                          join_path(parent_directory(later.path),
                                    fmt::format("{}-nvidia.toml", base_name(later.path)))));
}

// What another file says later would win, so nothing is written then.
Status check_later_files(const sys::Host& host, const CrioTarget& target, const TomlFile& file,
                         const EngineOptions& options) {
  GANTRY_TRY(const auto config,
             CrioConfig::read(host, target.paths, CrioFile{target.file, file.document()}));
  const auto& name = options.runtime_name;
  const auto* runtime = config.file_with_runtime(name);
  if (runtime->path != target.file) {
    return refuse(*runtime, toml_edit::to_string(crio_runtime_table(name)), target);
  }
  if (options.set_as_default && config.default_runtime() != name) {
    const auto key = crio_default_runtime_key();
    return refuse(*config.file_with(key), toml_edit::to_string(key), target);
  }
  return {};
}

void note_missing_program(const Expectation& expected, std::vector<std::string>& notes) {
  if (expected.program_exists) return;
  notes.push_back(fmt::format(
      "{} does not exist; without it {}. --runtime-path=FILE names another", expected.runtime_path,
      expected.is_default ? "CRI-O does not start" : "CRI-O ignores the runtime"));
}

Status plan_runtime(const sys::Host& host, const EngineOptions& options, const CrioTarget& target,
                    ChangePlan& plan) {
  GANTRY_TRY(const auto config,
             options.query_engine ? ask_crio(options) : CrioConfig::read(host, target.paths));
  GANTRY_TRY(auto file, TomlFile::open(host, target.file));
  const auto runtime = crio_runtime_table(options.runtime_name);
  if (!file.document().has(runtime)) {
    GANTRY_CHECK(copy_runtime(config, options, file, plan.notes));
  }
  const auto known = file.document().string(runtime / "runtime_path").value_or("");
  const auto path = options.runtime_path.empty()
                        ? keep_program(host, known, kRuntimePath, plan.notes)
                        : options.runtime_path;
  GANTRY_CHECK(file.set_text(runtime / "runtime_path", path));
  GANTRY_CHECK(set_type(file, options));
  if (options.set_as_default) {
    GANTRY_CHECK(file.set_text(crio_default_runtime_key(), options.runtime_name));
  }
  GANTRY_CHECK(check_later_files(host, target, file, options));
  plan.expectation = {options.runtime_name, path, options.set_as_default,
                      !path.starts_with('/') || host.exists(path)};
  note_missing_program(plan.expectation, plan.notes);
  plan.files.push_back(std::move(file).change());
  return {};
}

}  // namespace

Result<ChangePlan> plan_crio(const sys::Host& host, const EngineOptions& options) {
  const auto target = target_of(options);
  ChangePlan plan{.engine = Engine::Crio,
                  .config = target.paths.main,
                  .program = program_of(options),
                  .show_config = command_that_shows(host, options, target)};
  if (options.mode == IntegrationMode::Hook) {
    GANTRY_TRY(const auto config, CrioConfig::read(host, {.main = target.paths.main}));
    GANTRY_CHECK(add_hook(host, options, config.hook_directories(), plan));
    return plan;  // CRI-O watches the directories of its hooks and needs no restart
  }
  plan.restart = {"systemctl", "restart", "crio"};
  if (options.enable_cdi) plan.notes.emplace_back("CRI-O reads CDI specs by default");
  GANTRY_CHECK(plan_runtime(host, options, target, plan));
  return plan;
}

}  // namespace gantry::engines
