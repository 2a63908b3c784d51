// SPDX-License-Identifier: Apache-2.0
// The words of a line of resolv.conf, hosts or nsswitch.conf.
#pragma once

#include <string_view>
#include <vector>

namespace gantry::dns {

// The words between white space, up to a character that begins a comment.
std::vector<std::string_view> words_of_line(std::string_view line, std::string_view comment_marks);

}  // namespace gantry::dns
