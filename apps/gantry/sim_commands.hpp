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
void add_sim_use(CLI::App& sim, Context& context, Action& chosen);
void add_sim_boot(CLI::App& sim, Context& context, Action& chosen);
void add_sim_package(CLI::App& sim, Context& context, Action& chosen);
// Whether a simulated machine may be served at this path of the real machine: not over a real
// driver, and not over a file that `sim use` did not write.
Status check_serve_target(const sys::Host& live, const std::string& path);
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
// PATH, GANTRY_ROOT and those of NVIDIA's container toolkit. Does nothing if the directory is not a
// simulated machine.
Status use_simulated_machine(const sys::Host& host);

}  // namespace gantry::cli
