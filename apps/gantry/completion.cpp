// SPDX-License-Identifier: Apache-2.0
// gantry completion bash|zsh: made from the same declarations that parse the command line, so that
// it cannot fall behind.
#include "gantry/commands.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace gantry::cli {
namespace {

// "gantry sim create" -> the words that may follow it.
struct Place {
  std::string path;
  std::string words;
};

void collect(const CLI::App& app, const std::string& path, std::vector<Place>& places) {
  Place place{.path = path, .words = {}};
  for (const auto* command : app.get_subcommands({})) {
    if (!command->get_group().empty()) place.words += command->get_name() + " ";
  }
  for (const auto* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) place.words += "--" + name + " ";
  }
  places.push_back(place);
  for (const auto* command : app.get_subcommands({})) {
    collect(*command, path + " " + command->get_name(), places);
  }
}

// Walks the words typed so far as far as they are commands, then offers what may come there. A word
// that takes a directory or file (--root) completes as one.
constexpr const char* kBashBody = R"(
_gantry() {
  local place=gantry word i current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
  COMPREPLY=()
  case $previous in
    --root) mapfile -t COMPREPLY < <(compgen -d -- "$current"); return ;;
  esac
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    [[ -n ${_gantry_words["$place $word"]+set} ]] && place="$place $word"
  done
  mapfile -t COMPREPLY < <(compgen -W "${_gantry_words[$place]}" -- "$current")
}
complete -o default -F _gantry gantry
)";

constexpr const char* kZshBody = R"(
_gantry() {
  local place=gantry word
  [[ $words[CURRENT-1] == --root ]] && { _files -/; return }
  for word in ${words[2,CURRENT-1]}; do
    (( ${+_gantry_words[$place $word]} )) && place="$place $word"
  done
  compadd -- ${=_gantry_words[$place]} || _files
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _gantry "$@"; else compdef _gantry gantry; fi
)";

std::string script(const CLI::App& app, const std::string& shell) {
  std::vector<Place> places;
  collect(app, "gantry", places);
  std::string table;
  for (const auto& [path, words] : places) {
    table += shell == "zsh" ? fmt::format("  '{}' '{}'\n", path, words)
                            : fmt::format("  [\"{}\"]=\"{}\"\n", path, words);
  }
  if (shell == "zsh") {
    return fmt::format("#compdef gantry\ntypeset -gA _gantry_words=(\n{}){}", table, kZshBody);
  }
  return fmt::format("# bash completion for gantry\ndeclare -gA _gantry_words=(\n{}){}", table,
                     kBashBody);
}

}  // namespace

void add_completion(CLI::App& app, Context&, Action& chosen) {
  auto shell = std::make_shared<std::string>();
  auto* command = app.add_subcommand("completion", "Print the completion script of a shell");
  command->add_option("shell", *shell, "bash or zsh")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}));
  add_examples(*command,
               "  gantry completion bash > /etc/bash_completion.d/gantry\n"
               "  gantry completion zsh > /usr/share/zsh/site-functions/_gantry\n");
  command->callback([shell, &app, &chosen] {
    chosen = [shell, &app](Context& context) -> Result<int> {
      fmt::print(context.out, "{}", script(app, *shell));
      return kOk;
    };
  });
}

}  // namespace gantry::cli
