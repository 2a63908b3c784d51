// SPDX-License-Identifier: Apache-2.0
// What the files behind `gantry sim` share.
#pragma once

#include "gantry/command.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gantry::cli {

void add_root(CLI::App& command, Context& context);                    // --root, required
void add_sim_inject(CLI::App& sim, Context& context, Action& chosen);  // inject and state
// What a word on the command line stands for. `CLI::ValidationError` when it is none of them:
// CLI11's own transformer shows people the numbers behind the words.
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

// What programs of this process's environment need to find the tree's driver: LD_LIBRARY_PATH,
// PATH, GANTRY_ROOT. Nothing for a tree that is no simulated machine.
Status use_simulated_machine(const sys::Host& host);

std::string json_text(std::string_view text);  // quoted

}  // namespace gantry::cli
