// SPDX-License-Identifier: Apache-2.0
#include "gantry/mig_hooks.hpp"

#include "base/core/text.hpp"
#include "base/sys/child.hpp"
#include "base/sys/trusted.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>

namespace gantry::cli {
namespace {

constexpr std::size_t kMaxHooksBytes = std::size_t{256} << 10;
constexpr std::chrono::minutes kHookDeadline{10};  // it may stop and start services
constexpr std::size_t kShownOutput = 400;

std::vector<std::string> environment_of(const mig::HookCommand& hook,
                                        const std::map<std::string, std::string>& environment) {
  auto all = environment;
  all.insert(hook.envs.begin(), hook.envs.end());  // what is there already stays
  std::vector<std::string> words;
  for (const auto& [name, value] : all) words.push_back(fmt::format("{}={}", name, value));
  return words;
}

Status run_hook(const mig::HookCommand& hook, const std::vector<std::string>& environment,
                bool show, const Context& context) {
  std::vector<std::string> words{hook.command};
  words.insert(words.end(), hook.args.begin(), hook.args.end());
  const auto enter = [&] { return hook.workdir.empty() || ::chdir(hook.workdir.c_str()) == 0; };
  GANTRY_TRY(const auto result,
             sys::run_command(words, {.deadline = kHookDeadline,
                                      .environment = environment,
                                      .before = enter,
                                      .long_output = sys::LongOutput::KeepsEnd}));
  if (show) fmt::print(context.out, "{}", result.output);
  if (result.status == 0) return {};
  auto said = std::string(trim(result.output));
  if (said.size() > kShownOutput) said = said.substr(said.size() - kShownOutput);
  return Error(Errc::Denied, fmt::format("`{}` ended with {}{}{}", fmt::join(words, " "),
                                         result.status, said.empty() ? "" : ": ", said));
}

}  // namespace

Result<mig::MigHooks> read_mig_hooks(const std::string& file) {
  if (file.empty()) return mig::MigHooks{};
  GANTRY_TRY(const auto here, sys::Host::at("/"));
  GANTRY_TRY(const auto text,
             sys::read_trusted(here, file, kMaxHooksBytes).in("reading the hooks"));
  return mig::parse_hooks(text, file);
}

Status run_mig_hooks(const std::vector<mig::HookCommand>& hooks, std::string_view name,
                     const std::map<std::string, std::string>& environment, bool show,
                     const Context& context) {
  for (const auto& hook : hooks) {
    GANTRY_CHECK(run_hook(hook, environment_of(hook, environment), show, context)
                     .in(fmt::format("the hook {}", name)));
  }
  return {};
}

}  // namespace gantry::cli
