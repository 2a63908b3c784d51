// SPDX-License-Identifier: Apache-2.0
// What a text means, by toml++. Its header is heavy: only meaning.cpp includes it.
#pragma once

#include "base/toml_edit/document.hpp"

namespace gantry::toml_edit::detail {

Status check_syntax(std::string_view text);  // Corrupt, with the line

std::optional<std::string> as_string(std::string_view raw);
std::optional<std::int64_t> as_integer(std::string_view raw);
std::optional<std::vector<std::string>> as_strings(std::string_view raw);

// Internal when `after` is not `before` with this one value set, or with this path gone. Tables
// that are left empty count as gone, too.
Status check_set(std::string_view before, const Path& path, std::string_view raw,
                 std::string_view after);
Status check_removed(std::string_view before, const Path& path, std::string_view after);

}  // namespace gantry::toml_edit::detail
