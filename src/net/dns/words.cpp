// SPDX-License-Identifier: Apache-2.0
#include "net/dns/words_internal.hpp"

namespace gantry::dns {

std::vector<std::string_view> words_of_line(std::string_view line, std::string_view comment_marks) {
  constexpr std::string_view kWhiteSpace = " \t\r\v\f";
  line = line.substr(0, line.find_first_of(comment_marks));
  std::vector<std::string_view> words;
  while (true) {
    const auto begin = line.find_first_not_of(kWhiteSpace);
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    const auto end = line.find_first_of(kWhiteSpace);
    words.push_back(line.substr(0, end));
    if (end == std::string_view::npos) return words;
    line.remove_prefix(end);
  }
}

}  // namespace gantry::dns
