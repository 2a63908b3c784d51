// SPDX-License-Identifier: Apache-2.0
#include "container/engines/change_plan.hpp"

#include "base/core/text.hpp"
#include "container/engines/change_plan_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace gantry::engines {
namespace {

constexpr std::array kEngines{std::pair{Engine::Docker, "docker"},
                              std::pair{Engine::Containerd, "containerd"},
                              std::pair{Engine::Crio, "crio"}, std::pair{Engine::Podman, "podman"}};
constexpr std::array kDistributions{
    std::pair{Distribution::Auto, "auto"},         std::pair{Distribution::Plain, "plain"},
    std::pair{Distribution::K3s, "k3s"},           std::pair{Distribution::Rke2, "rke2"},
    std::pair{Distribution::Microk8s, "microk8s"}, std::pair{Distribution::K0s, "k0s"}};

template <class Table>
auto named(const Table& table, std::string_view name, std::string_view what)
    -> Result<decltype(table[0].first)> {
  std::string all;
  for (const auto& [value, word] : table) {
    if (word == name) return value;
    all += fmt::format("{}{}", all.empty() ? "" : ", ", word);
  }
  return Error(Errc::Invalid, fmt::format("there is no {} `{}`; known: {}", what, name, all));
}

// The name becomes a key of a configuration and, for CRI-O, a file name.
Status check_name(std::string_view name) {
  const bool good = !name.empty() && name.size() <= 64 &&
                    std::all_of(name.begin(), name.end(), [](unsigned char c) {
                      return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
                    });
  if (good) return {};
  return Error(Errc::Invalid,
               fmt::format("`{}` is not a valid runtime name: use letters, digits, - _ .", name));
}

}  // namespace

std::string_view to_string(Engine engine) {
  return name_in_table(kEngines, engine);
}

Result<Engine> parse_engine(std::string_view name) {
  if (name == "cri-o") name = "crio";
  return named(kEngines, name, "engine");
}

std::string_view to_string(Distribution distribution) {
  return name_in_table(kDistributions, distribution);
}

Result<Distribution> parse_distribution(std::string_view name) {
  return named(kDistributions, name, "distribution");
}

bool ChangePlan::changes() const {
  return std::any_of(files.begin(), files.end(), [](const auto& file) { return file.changes(); });
}

Result<ChangePlan> make_plan(const sys::Host& host, const EngineOptions& wanted) {
  GANTRY_CHECK(check_name(wanted.runtime_name));
  auto options = wanted;
  if (options.hook_path.empty()) options.hook_path = installed_path(host, kHookPath);
  switch (options.engine) {
    case Engine::Docker: return plan_docker(host, options);
    case Engine::Containerd: return plan_containerd(host, options);
    case Engine::Crio: return plan_crio(host, options);
    case Engine::Podman: return plan_podman(host, options);
  }
  return Error(Errc::Internal, "unknown engine");
}

std::string installed_path(const sys::Host& host, std::string_view usual) {
  const auto local = fmt::format("/usr/local/bin/{}", usual.substr(usual.rfind('/') + 1));
  return !host.exists(usual) && host.exists(local) ? local : std::string(usual);
}

std::string keep_program(const sys::Host& host, const std::string& program, std::string_view usual,
                         std::vector<std::string>& notes) {
  const auto installed = installed_path(host, kRuntimePath);
  auto ours = usual == kRuntimePath ? installed : std::string(usual);
  if (program.empty()) return ours;
  const bool stale = program.starts_with('/') && program != installed && !host.exists(program);
  if (!stale) return program;
  notes.push_back(fmt::format("the runtime's program was {}, which does not exist; it is now {}",
                              program, ours));
  return ours;
}

// logrus begins a line with the time or, as in `crio config`, with the level. A TOML file may have
// a key `level`, but no value that continues like that.
std::string without_log(std::string_view output) {
  std::string rest;
  for (const auto line : lines(output)) {
    const bool log =
        line.starts_with("time=") || (line.starts_with("level=") && contains(line, " msg="));
    if (!log) rest += fmt::format("{}\n", line);
  }
  return rest;
}

Result<std::optional<std::string>> read_optional(const sys::Host& host, const std::string& path) {
  auto text = host.read(path, toml_edit::kMaxBytes);
  if (text.ok()) return std::optional(*std::move(text));
  if (text.error().code() == Errc::NotFound) return std::optional<std::string>();
  return std::move(text).error();
}

}  // namespace gantry::engines
