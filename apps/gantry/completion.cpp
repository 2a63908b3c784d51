// SPDX-License-Identifier: Apache-2.0
// gantry completion bash|zsh: generated from the declarations that parse the command line, so that
// it cannot become stale.
#include "gantry/commands.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace gantry::cli {
namespace {

// "gantry sim create" -> the words that may follow it, and those of them that need a value.
struct Place {
  std::string path;
  std::string words;
  std::string wanting;
};

void collect(const CLI::App& app, const std::string& path, std::vector<Place>& places) {
  Place place{.path = path, .words = {}, .wanting = {}};
  for (const auto* command : app.get_subcommands({})) {
    if (!command->get_group().empty()) place.words += command->get_name() + " ";
  }
  for (const auto* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden from the help as well
    for (const auto& name : option->get_lnames()) {
      place.words += "--" + name + " ";
      if (option->get_items_expected_max() != 0) place.wanting += "--" + name + " ";
    }
  }
  places.push_back(place);
  for (const auto* command : app.get_subcommands({})) {
    collect(*command, path + " " + command->get_name(), places);
  }
}

// Follows the words typed so far while they are commands, then offers the words that may come next.
// After an option that needs a value it offers files; after `--` it offers commands.
constexpr const char* kBashBody = R"(
_gantry() {
  local place=gantry word i current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
  COMPREPLY=()
  case $previous in
    --root) mapfile -t COMPREPLY < <(compgen -d -- "$current"); return ;;
  esac
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ $word == -- ]]; then
      ((i == COMP_CWORD - 1)) && mapfile -t COMPREPLY < <(compgen -c -- "$current")
      return
    fi
    [[ -n ${_gantry_words["$place $word"]+set} ]] && place="$place $word"
  done
  [[ " ${_gantry_wanting[$place]} " == *" $previous "* ]] && return
  mapfile -t COMPREPLY < <(compgen -W "${_gantry_words[$place]}" -- "$current")
}
complete -o default -F _gantry gantry
)";

constexpr const char* kZshBody = R"(
_gantry() {
  local place=gantry word
  [[ $words[CURRENT-1] == --root ]] && { _files -/; return }
  for word in ${words[2,CURRENT-1]}; do
    [[ $word == -- ]] && { [[ $words[CURRENT-1] == -- ]] && _command_names || _files; return }
    (( ${+_gantry_words[$place $word]} )) && place="$place $word"
  done
  [[ " $_gantry_wanting[$place] " == *" $words[CURRENT-1] "* ]] && { _files; return }
  compadd -- ${=_gantry_words[$place]} || _files
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _gantry "$@"; else compdef _gantry gantry; fi
)";

std::string script(const CLI::App& app, const std::string& shell) {
  std::vector<Place> places;
  collect(app, "gantry", places);
  const bool zsh = shell == "zsh";
  const auto table = [&](const char* name, std::string Place::*words) {
    std::string rows;
    for (const auto& place : places) {
      rows += zsh ? fmt::format("  '{}' '{}'\n", place.path, place.*words)
                  : fmt::format("  [\"{}\"]=\"{}\"\n", place.path, place.*words);
    }
    return fmt::format("{} -gA {}=(\n{})\n", zsh ? "typeset" : "declare", name, rows);
  };
  return fmt::format("{}\n{}{}{}", zsh ? "#compdef gantry" : "# bash completion for gantry",
                     table("_gantry_words", &Place::words),
                     table("_gantry_wanting", &Place::wanting), zsh ? kZshBody : kBashBody);
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
