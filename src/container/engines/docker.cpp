// SPDX-License-Identifier: Apache-2.0
// /etc/docker/daemon.json. Docker has no drop-ins.
#include "base/core/text.hpp"
#include "base/json/patch.hpp"
#include "container/engines/change_plan_internal.hpp"

#include <fmt/format.h>

namespace gantry::engines {
namespace {

// Gives a new file four spaces of indentation, as Docker uses.
constexpr std::string_view kNewFile = "{\n    \"\": 0\n}\n";

class JsonFile {
 public:
  explicit JsonFile(const json::Document& document) : document_(document) {}

  void set(const std::vector<std::string>& path, std::string value) {
    auto at = document_.root();
    for (const auto& part : path) at = at[part];
    if (at && at.raw() == value) return;
    for (std::size_t depth = 1; depth < path.size(); ++depth) {
      const std::vector<std::string> table(path.begin(),
                                           path.begin() + static_cast<std::ptrdiff_t>(depth));
      auto there = document_.root();
      for (const auto& part : table) there = there[part];
      const KeyChange made{.kind = KeyChange::Kind::Table, .path = table};
      if (!there && std::find(keys_.begin(), keys_.end(), made) == keys_.end()) {
        keys_.push_back(made);
      }
    }
    patch_.set(json::Path(path.begin(), path.end()), value);
    keys_.push_back({.path = path,
                     .before = at ? std::optional<std::string>(at.raw()) : std::nullopt,
                     .after = std::move(value)});
  }

  void drop_placeholder() { patch_.remove({""}); }
  Result<std::string> text() const { return patch_.apply(document_); }
  std::vector<KeyChange> keys() && { return std::move(keys_); }

 private:
  const json::Document& document_;
  json::Patch patch_;
  std::vector<KeyChange> keys_;
};

void add_runtime(const EngineOptions& options, const json::Document& document,
                 const std::string& program, JsonFile& file) {
  const auto runtime = document["runtimes"][options.runtime_name];
  const std::vector<std::string> path{"runtimes", options.runtime_name};
  if (!runtime.is(json::Kind::Object)) {
    auto args = path;
    args.emplace_back("args");
    file.set(args, "[]");
  }
  if (runtime["path"].string() != program) {
    auto key = path;
    key.emplace_back("path");
    file.set(key, json::quote(program));
  }
  if (options.set_as_default) file.set({"default-runtime"}, json::quote(options.runtime_name));
  if (options.enable_cdi) file.set({"features", "cdi"}, "true");
}

}  // namespace

Result<ChangePlan> plan_docker(const sys::Host& host, const EngineOptions& options) {
  if (options.mode == IntegrationMode::Hook) {
    return Error(Errc::Unsupported, "docker has no hooks.d; omit --config-mode=oci-hook");
  }
  const auto path =
      options.config.empty() ? std::string("/etc/docker/daemon.json") : options.config;
  GANTRY_TRY(auto before, read_optional(host, path));
  const bool is_new = !before || trim(*before).empty();
  GANTRY_TRY(const auto document,
             json::Document::parse(is_new ? std::string(kNewFile) : *before, json::Encoding::Any)
                 .in(path));
  if (!document.root().is(json::Kind::Object)) {
    return Error(Errc::Corrupt, fmt::format("{}: is {}, not an object", path,
                                            json::to_string(document.root().kind())));
  }
  ChangePlan plan{.engine = Engine::Docker, .config = path, .program = "dockerd"};
  const auto known = document["runtimes"][options.runtime_name]["path"].string().value_or("");
  const auto program = options.runtime_path.empty()
                           ? keep_program(host, known, kRuntimeProgram, plan.notes)
                           : options.runtime_path;
  JsonFile file(document);
  add_runtime(options, document, program, file);
  if (is_new) file.drop_placeholder();
  GANTRY_TRY(auto after, file.text().in(path));

  plan.expectation = {.runtime_name = options.runtime_name,
                      .runtime_path = program,
                      .is_default = options.set_as_default};
  plan.restart = {"systemctl", "restart", "docker"};
  if (options.enable_cdi) plan.notes.emplace_back("docker reads CDI specs since version 25");
  plan.files.push_back({.path = path,
                        .format = Format::Json,
                        .before = std::move(before),
                        .after = std::move(after),
                        .keys = std::move(file).keys()});
  return plan;
}

}  // namespace gantry::engines
