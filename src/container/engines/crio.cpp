// SPDX-License-Identifier: Apache-2.0
// CRI-O: a drop-in with our runtime, or the classic hook.
#include "base/json/document.hpp"
#include "container/engines/change_plan_internal.hpp"

#include <fmt/format.h>

namespace gantry::engines {
namespace {

constexpr std::string_view kCrioConfig = "/etc/crio/crio.conf";
constexpr std::string_view kCrioDirectory = "/etc/crio/crio.conf.d";
constexpr std::string_view kCrioDropIn = "/etc/crio/crio.conf.d/99-nvidia.toml";

toml_edit::Path runtime_table() {
  return {"crio", "runtime"};
}

// CRI-O's files in the order in which it reads them; later ones override single keys.
Result<std::vector<toml_edit::Document>> read_all(const sys::Host& host,
                                                  const EngineOptions& options,
                                                  const std::string& except) {
  std::vector<std::string> paths{options.config.empty() ? std::string(kCrioConfig)
                                                        : options.config};
  if (const auto names = host.list(kCrioDirectory); names.ok()) {
    for (const auto& name : *names) paths.push_back(fmt::format("{}/{}", kCrioDirectory, name));
  }
  std::vector<toml_edit::Document> documents;
  for (const auto& path : paths) {
    if (path == except || documents.size() >= kMaxConfigFiles) continue;
    GANTRY_TRY(auto text, read_optional(host, path));
    if (!text) continue;
    GANTRY_TRY(auto document, toml_edit::Document::parse(*std::move(text)).in(path));
    documents.push_back(std::move(document));
  }
  return documents;
}

Result<std::vector<toml_edit::Document>> ask_crio(const EngineOptions& options) {
  const auto program = options.executable.empty() ? std::string("crio") : options.executable;
  if (!options.run)
    return Error(Errc::Unsupported, "crio cannot be run here; use --config-source=file");
  auto text = options.run({program, "status", "config"});
  if (!text.ok()) text = options.run({"crio-status", "config"});
  GANTRY_TRY(auto answer, std::move(text).in("asking CRI-O for its configuration"));
  const auto begin = answer.find('[');  // log messages may come first
  GANTRY_TRY(auto document,
             toml_edit::Document::parse(begin == std::string::npos ? "" : answer.substr(begin)));
  return std::vector{std::move(document)};
}

// The options of the default runtime, from the last file that sets them.
Status copy_default_runtime(const std::vector<toml_edit::Document>& documents,
                            const EngineOptions& options, TomlFile& file) {
  std::string name;
  for (const auto& document : documents) {
    name = document.string(runtime_table() / "default_runtime").value_or(name);
  }
  for (const auto& candidate : {name, std::string("crun"), std::string("runc")}) {
    if (candidate.empty() || candidate == options.runtime_name) continue;
    const auto from = runtime_table() / "runtimes" / candidate;
    bool found = false;
    for (const auto& document : documents) {
      if (!document.has(from)) continue;
      found = true;
      GANTRY_CHECK(copy_values(document, from, file,
                               runtime_table() / "runtimes" / options.runtime_name,
                               {from / "runtime_path", from / "runtime_type"}));
    }
    if (found) return {};
  }
  return {};
}

}  // namespace

FileChange hook_file(const EngineOptions& options, std::optional<std::string> before,
                     std::string path) {
  const std::string program =
      options.hook_path.empty() ? std::string(kHookPath) : options.hook_path;
  const auto name = program.substr(program.rfind('/') + 1);
  const auto text = fmt::format(
      R"({{
    "version": "1.0.0",
    "hook": {{
        "path": {},
        "args": [{}, "prestart"],
        "env": [
            "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        ]
    }},
    "when": {{
        "always": true,
        "commands": [".*"]
    }},
    "stages": ["prestart"]
}}
)",
      json::quote(program), json::quote(name));
  return {.path = std::move(path), .before = std::move(before), .after = text};
}

Result<ChangePlan> plan_crio(const sys::Host& host, const EngineOptions& options) {
  ChangePlan plan{
      .engine = Engine::Crio, .program = "crio", .restart = {"systemctl", "restart", "crio"}};
  plan.config = options.config.empty() ? std::string(kCrioConfig) : options.config;
  if (options.mode == IntegrationMode::Hook) {
    const auto path =
        options.drop_in && !options.drop_in->empty() ? *options.drop_in : std::string(kHookFile);
    GANTRY_TRY(auto before, read_optional(host, path));
    plan.files.push_back(hook_file(options, std::move(before), path));
    return plan;
  }
  auto target = options.drop_in.value_or(std::string(kCrioDropIn));
  if (target.empty()) target = plan.config;
  GANTRY_TRY(auto documents,
             options.query_engine ? ask_crio(options) : read_all(host, options, target));
  GANTRY_TRY(auto file, TomlFile::open(host, target));
  const auto runtime = runtime_table() / "runtimes" / options.runtime_name;
  if (!file.document().has(runtime)) GANTRY_CHECK(copy_default_runtime(documents, options, file));
  const auto known = file.document().string(runtime / "runtime_path").value_or("");
  const auto path = options.runtime_path.empty()
                        ? keep_program(host, known, kRuntimePath, plan.notes)
                        : options.runtime_path;
  GANTRY_CHECK(file.set_text(runtime / "runtime_path", path));
  GANTRY_CHECK(file.set_text(runtime / "runtime_type", "oci"));
  if (options.set_as_default) {
    GANTRY_CHECK(file.set_text(runtime_table() / "default_runtime", options.runtime_name));
  }
  if (options.enable_cdi) plan.notes.emplace_back("CRI-O reads CDI specs by default");
  plan.expectation = {options.runtime_name, path, options.set_as_default};
  plan.files.push_back(std::move(file).change());
  return plan;
}

}  // namespace gantry::engines
