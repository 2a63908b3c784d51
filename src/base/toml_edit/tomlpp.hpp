// SPDX-License-Identifier: Apache-2.0
// Include toml++ and parse with it only through this header. Some input breaks internal assumptions
// of version 3.3 ("[}" in a list, a header that begins with 0x7f): this aborts a debug build and is
// undefined behaviour in a release. Here it throws an exception in both, and parse_table catches
// it. Its character table has a similar defect, so check_bounds allows non-ASCII bytes only in
// strings and comments, as TOML does. Every file must see the same definition, so no file includes
// <toml++/toml.h> directly.
#pragma once

#include "base/core/result.hpp"

#include <string_view>

namespace gantry::toml_edit {
struct ParserAssertion {};
void throw_parser_assertion();  // throws it; a function, because some noexcept code of toml++ never
                                // calls it
}  // namespace gantry::toml_edit

#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expression) \
  ((expression) ? void() : ::gantry::toml_edit::throw_parser_assertion())
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

namespace gantry::toml_edit {

// The text must pass check_bounds() first. Returns Corrupt, with the line, if it is not TOML.
Result<::toml::table> parse_table(std::string_view text);

}  // namespace gantry::toml_edit
