// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/yaml/value.hpp"
#include "node/options/options.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::options {

// Sets an option from the text of a flag, a variable or a scalar. Lists are split at commas.
Status set_value(const Option& option, std::string_view text, Options& options);

// Sets an option from a list in the file.
Status set_list(const Option& option, const std::vector<std::string>& items, Options& options);

bool is_switch(const Option& option);  // a flag that needs no value
bool is_text(const Option& option);    // an empty variable sets the empty text
bool is_list(const Option& option);    // repeated flags add items
std::string allowed_values(
    const Option& option);  // "none, single or mixed"; "" if every value is allowed

std::vector<std::string_view> names_in(std::string_view joined);  // of "a|b"

// "; did you mean `--x`?" or "".
std::string did_you_mean(std::string_view wrong, const std::vector<std::string>& known,
                         std::string_view before = "");

Error error_at(const yaml::Value& value, std::string_view what);  // with its file and line

// Whether `program` has this option.
constexpr bool has_option(Program program, const Option& option) {
  return (option.programs & bit_of(program)) != 0;
}

// The options that a program has without flags, variables and file.
Options default_options(Program program);

// Read the parts of the file that are not single options.
Status read_sharing(const yaml::Value& value, Options& options);
Status read_name_rules(const yaml::Value& value, Options& options);
Status read_gpu_rules(const yaml::Value& value, Options& options);

}  // namespace gantry::options
