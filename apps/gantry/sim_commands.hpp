// SPDX-License-Identifier: Apache-2.0
// Shared by the files that implement `gantry sim`.
#pragma once

#include "gantry/command.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gantry::cli {

void add_root(CLI::App& command, Context& context);                    // --root, required
void add_sim_inject(CLI::App& sim, Context& context, Action& chosen);  // inject and state
// The value that a word on the command line stands for. Throws `CLI::ValidationError` for an
// unknown word. CLI11's own transformer is not used because it prints the numbers behind the words.
[[noreturn]] void reject_choice(const std::string& option, const std::string& word,
                                const std::string& known);
template <class T>
T parse_choice(const std::string& option, const std::string& word,
               const std::vector<std::pair<std::string, T>>& words) {
  std::string known;
  for (const auto& [name, value] : words) {
    if (name == word) return value;
    known += (known.empty() ? "" : ", ") + name;
  }
  reject_choice(option, word, known);
}

// The variables that programs need to find the driver of a simulated machine: LD_LIBRARY_PATH,
// PATH, GANTRY_ROOT. Empty if the directory is not a simulated machine.
Status use_simulated_machine(const sys::Host& host);

std::string json_text(std::string_view text);  // quoted

}  // namespace gantry::cli
