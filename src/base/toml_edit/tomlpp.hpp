// SPDX-License-Identifier: Apache-2.0
// The one way to include toml++, and to parse with it. Version 3.3 takes some of its parser's rules
// for granted ("[}" in a list, a header that begins with 0x7f): broken, they abort a debug build
// and are undefined behaviour in a release. Here they are an exception in both, which parse_table
// catches. Its table of letters has such a hole, too: check_bounds keeps what is no ASCII out of
// everything but texts and comments, as TOML itself does. Every file must see the same definition,
// so nobody includes <toml++/toml.h> by himself.
#pragma once

#include "base/core/result.hpp"

#include <string_view>

namespace gantry::toml_edit {
struct ParserAssertion {};
void throw_parser_assertion();  // throws it; a function, because some of toml++ is noexcept and
                                // never comes here
}  // namespace gantry::toml_edit

#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expression) \
  ((expression) ? void() : ::gantry::toml_edit::throw_parser_assertion())
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

namespace gantry::toml_edit {

// Within the bounds of check_bounds(). Corrupt, with the line, when it is no TOML.
Result<::toml::table> parse_table(std::string_view text);

}  // namespace gantry::toml_edit
