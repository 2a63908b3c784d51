// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig/hooks_file.hpp"

#include "base/core/printable.hpp"
#include "gpu/mig/config_reader_internal.hpp"

#include <fmt/format.h>

namespace gantry::mig {
namespace {

using yaml::Value;

constexpr std::size_t kMaxHookItems = 256;  // of one list

Result<std::string> read_text(const Value& value, std::string_view field) {
  if (value.kind == Value::Kind::Null) return std::string();
  if (value.kind != Value::Kind::Scalar)
    return wrong_value(value, fmt::format("{} must be text", field));
  return value.text;
}

Result<std::vector<std::string>> read_args(const Value& value) {
  std::vector<std::string> args;
  if (value.kind == Value::Kind::Null) return args;
  if (value.kind != Value::Kind::List || value.items.size() > kMaxHookItems)
    return wrong_value(value,
                       fmt::format("args must be a list of at most {} texts", kMaxHookItems));
  for (const auto& item : value.items) {
    GANTRY_TRY(auto text, read_text(item, "an argument"));
    args.push_back(std::move(text));
  }
  return args;
}

Result<std::map<std::string, std::string>> read_envs(const Value& value) {
  std::map<std::string, std::string> envs;
  if (value.kind == Value::Kind::Null) return envs;
  if (value.kind != Value::Kind::Map || value.entries.size() > kMaxHookItems)
    return wrong_value(value, fmt::format("envs must be a map of at most {} texts", kMaxHookItems));
  for (const auto& [name, item] : value.entries) {
    if (name.empty() || name.find('=') != std::string::npos) {
      return wrong_value(item, fmt::format("`{}` is not the name of an environment variable",
                                           printable(name.substr(0, 64))));
    }
    GANTRY_TRY(envs[name], read_text(item, "the value of an environment variable"));
  }
  return envs;
}

Result<HookCommand> read_command(const Value& map) {
  if (map.kind != Value::Kind::Map) return wrong_value(map, "a hook must be a map");
  GANTRY_CHECK(only_fields(map, "a hook", {"workdir", "command", "args", "envs"}));
  HookCommand hook;
  if (const auto* value = map.find("workdir")) {
    GANTRY_TRY(hook.workdir, read_text(*value, "workdir"));
  }
  if (const auto* value = map.find("command")) {
    GANTRY_TRY(hook.command, read_text(*value, "command"));
  }
  if (hook.command.empty()) return wrong_value(map, "a hook needs a `command`");
  if (const auto* value = map.find("args")) {
    GANTRY_TRY(hook.args, read_args(*value));
  }
  if (const auto* value = map.find("envs")) {
    GANTRY_TRY(hook.envs, read_envs(*value));
  }
  return hook;
}

Status read_hooks(const Value& hooks, std::string_view name, std::vector<HookCommand>& commands) {
  const auto* list = hooks.find(name);
  if (list == nullptr || list->kind == Value::Kind::Null) return {};
  if (list->kind != Value::Kind::List || list->items.size() > kMaxHookItems)
    return wrong_value(*list,
                       fmt::format("{} must be a list of at most {} hooks", name, kMaxHookItems));
  for (const auto& item : list->items) {
    GANTRY_TRY(auto hook, read_command(item));
    commands.push_back(std::move(hook));
  }
  return {};
}

}  // namespace

Result<MigHooks> parse_hooks(std::string_view text, std::string_view file) {
  GANTRY_TRY(const auto root, read_v1(text, file));
  GANTRY_CHECK(only_fields(root, "the file", {"version", "hooks"}));
  MigHooks found;
  const auto* hooks = root.find("hooks");
  if (hooks == nullptr || hooks->kind == Value::Kind::Null) return found;
  if (hooks->kind != Value::Kind::Map) return wrong_value(*hooks, "hooks must be a map");
  GANTRY_CHECK(only_fields(*hooks, "hooks",
                           {"apply-start", "pre-apply-mode", "pre-apply-config", "apply-exit"}));
  GANTRY_CHECK(read_hooks(*hooks, "apply-start", found.apply_start));
  GANTRY_CHECK(read_hooks(*hooks, "pre-apply-mode", found.pre_apply_mode));
  GANTRY_CHECK(read_hooks(*hooks, "pre-apply-config", found.pre_apply_config));
  GANTRY_CHECK(read_hooks(*hooks, "apply-exit", found.apply_exit));
  return found;
}

}  // namespace gantry::mig
