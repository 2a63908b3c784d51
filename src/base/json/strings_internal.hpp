// SPDX-License-Identifier: Apache-2.0
// JSON's string literals.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace gantry::json {

// Length of the literal at the start of `text`, quotes included; nullopt if it is not a valid one.
std::optional<std::size_t> string_length(std::string_view text);

// Decodes a valid literal. A lone surrogate becomes U+FFFD, as Go reads it.
std::string unquote(std::string_view literal);

// Compares the decoded strings: "a" and "\u0061" are equal. Returns less than, equal to or greater
// than 0.
int compare_strings(std::string_view literal, std::string_view other);

bool means(std::string_view literal, std::string_view text);

}  // namespace gantry::json
