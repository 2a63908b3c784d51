// SPDX-License-Identifier: Apache-2.0
// Text of a stranger, an image's author say, on somebody's terminal: a control character in it
// could clear the screen, retitle the window or fake a line of ours.
#pragma once

#include <string>
#include <string_view>

namespace gantry {

// Control characters, new lines among them, as \xNN; where the text is no UTF-8, so is every byte
// that is no ASCII.
std::string printable(std::string_view text);

// The same for a text of many lines, which it keeps.
std::string printable_lines(std::string_view text);

}  // namespace gantry
