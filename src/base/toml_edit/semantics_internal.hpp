// SPDX-License-Identifier: Apache-2.0
// The meaning of a TOML text, read by toml++. In this module only semantics.cpp includes toml++,
// because it compiles slowly.
#pragma once

#include "base/toml_edit/document.hpp"

namespace gantry::toml_edit::detail {

Status check_syntax(std::string_view text);  // Corrupt, with the line

std::optional<std::string> as_string(std::string_view raw);
std::optional<std::int64_t> as_integer(std::string_view raw);
std::optional<std::vector<std::string>> as_strings(std::string_view raw);

// Returns Internal unless `after` equals `before` with only this value set, or only this path
// removed. A table that becomes empty counts as removed.
Status check_set(std::string_view before, const Path& path, std::string_view raw,
                 std::string_view after);
Status check_removed(std::string_view before, const Path& path, std::string_view after);

}  // namespace gantry::toml_edit::detail
