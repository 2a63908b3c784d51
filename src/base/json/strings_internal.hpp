// SPDX-License-Identifier: Apache-2.0
// JSON's string literals.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace gantry::json {

// Length of the literal at the start of `text`, quotes included; nullopt when it is no good one.
std::optional<std::size_t> string_length(std::string_view text);

// What a good literal means. A lone surrogate becomes U+FFFD, as Go reads it.
std::string unquote(std::string_view literal);

// By what they mean: "a" and "\u0061" are the same. Less than, equal to or greater than 0.
int compare_strings(std::string_view literal, std::string_view other);

bool means(std::string_view literal, std::string_view text);

}  // namespace gantry::json
