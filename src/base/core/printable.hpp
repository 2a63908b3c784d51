// SPDX-License-Identifier: Apache-2.0
// Makes text from untrusted sources, such as the author of an image, safe for a terminal. A control
// character could clear the screen, change the window's title or imitate one of our lines.
#pragma once

#include <string>
#include <string_view>

namespace gantry {

// Writes control characters, including newlines, as \xNN. If the text is not valid UTF-8, all
// non-ASCII bytes are also written as \xNN.
std::string printable(std::string_view text);

// The same for text of several lines; keeps the newlines.
std::string printable_lines(std::string_view text);

}  // namespace gantry
