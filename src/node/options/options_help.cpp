// SPDX-License-Identifier: Apache-2.0
#include "node/options/options_internal.hpp"

#include <fmt/format.h>

namespace gantry::options {
namespace {

std::string flags_of(const Option& option) {
  std::string text;
  for (const auto name : names_in(option.flags)) {
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", name.size() == 1 ? "-" : "--", name);
  }
  return text;
}

std::string joined(std::string_view names, std::string_view by) {
  return fmt::format("{}", fmt::join(names_in(names), by));
}

std::string meaning_of(const Option& option) {
  const auto words = allowed_values(option);
  return words.empty() ? std::string(option.meaning) : fmt::format("{}: {}", option.meaning, words);
}

std::string in_code(std::string_view text) {
  return text.empty() ? std::string() : fmt::format("`{}`", text);
}

}  // namespace

std::string help_text(Program program) {
  std::string text = "Options (flag, environment, default):\n";
  for (const auto& option : option_table()) {
    if (!has_option(program, option)) continue;
    const auto flags = flags_of(option);
    text += fmt::format("  {}\n      {}", flags.empty() ? joined(option.environment, ", ") : flags,
                        meaning_of(option));
    if (!flags.empty() && !option.environment.empty())
      text += fmt::format(" [{}]", joined(option.environment, ", "));
    const auto value = value_text(option, default_options(program));
    if (!value.empty()) text += fmt::format(" (default {})", value);
    text += "\n";
  }
  return text;
}

std::string documentation() {
  std::string text =
      "| flag | environment | key of the file | default | meaning |\n| --- | --- | --- | --- | --- "
      "|\n";
  for (const auto& option : option_table()) {
    std::string flags;
    for (const auto name : names_in(option.flags))
      flags +=
          fmt::format("{}`{}{}`", flags.empty() ? "" : ", ", name.size() == 1 ? "-" : "--", name);
    std::string variables;
    for (const auto name : names_in(option.environment))
      variables += fmt::format("{}`{}`", variables.empty() ? "" : ", ", name);
    text += fmt::format("| {} | {} | {} | {} | {} |\n", flags, variables, in_code(option.key),
                        in_code(value_text(option, Options{})), meaning_of(option));
  }
  return text;
}

}  // namespace gantry::options
