// SPDX-License-Identifier: Apache-2.0
// gantry completion bash|zsh|fish: generated from the declarations that parse the command line, so
// that it cannot become stale. The scripts ask `gantry complete KIND` for values.
#include "container/engines/change_plan.hpp"
#include "doctor/checks/all_checks.hpp"
#include "gantry/commands.hpp"
#include "install/preflight/judge.hpp"
#include "sim/machine/machine.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <array>

namespace gantry::cli {
namespace {

// "gantry sim create" -> the words that may follow it, and those of them that need a value.
struct CommandPlace {
  std::string path;
  std::string words;
  std::string wanting;
};

// The kind of value that an option takes; with an empty option, a command's argument.
struct ValueKind {
  std::string_view command;
  std::string_view option;
  std::string_view kind;
};

constexpr std::array kValueKinds{
    ValueKind{"gantry completion", "", "shells"},
    ValueKind{"gantry doctor", "--explain", "checks"},
    ValueKind{"gantry doctor", "--fix", "checks"},
    ValueKind{"gantry doctor", "--only", "checks"},
    ValueKind{"gantry doctor", "--skip", "checks"},
    ValueKind{"gantry driver install", "--flavour", "flavours"},
    ValueKind{"gantry driver install", "--ignore", "findings"},
    ValueKind{"gantry driver install", "--source", "sources"},
    ValueKind{"gantry driver preflight", "--flavour", "flavours"},
    ValueKind{"gantry driver preflight", "--ignore", "findings"},
    ValueKind{"gantry driver preflight", "--source", "sources"},
    ValueKind{"gantry driver upgrade", "--flavour", "flavours"},
    ValueKind{"gantry driver upgrade", "--ignore", "findings"},
    ValueKind{"gantry driver upgrade", "--source", "sources"},
    ValueKind{"gantry runtime configure", "--distribution", "distributions"},
    ValueKind{"gantry runtime configure", "--runtime", "engines"},
    ValueKind{"gantry share explain", "", "shares"},
    ValueKind{"gantry share rm", "", "shares"},
    ValueKind{"gantry share set", "", "shares"},
    ValueKind{"gantry sim create", "", "machines"},
    ValueKind{"gantry sim show", "", "machines"},
};

void collect(const CLI::App& app, const std::string& path, std::vector<CommandPlace>& places) {
  CommandPlace place{.path = path, .words = {}, .wanting = {}};
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
    if (!command->get_group().empty()) collect(*command, path + " " + command->get_name(), places);
  }
}

// Follows the words typed so far while they are commands, then offers the words that may come next.
// After an option that needs a value it offers that kind of value, or files; after `--` it offers
// commands.
constexpr const char* kBashBody = R"script(
_gantry_values() {
  mapfile -t COMPREPLY < <(compgen -W "$(gantry complete "$1" 2>/dev/null)" -- "$2")
}
_gantry() {
  local place=gantry word i kind current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
  COMPREPLY=()
  # bash makes three words of --only=x
  [[ $current == = ]] && current=
  [[ $previous == = ]] && previous=${COMP_WORDS[COMP_CWORD-2]}
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
  kind=${_gantry_kinds["$place $previous"]}
  [[ -n $kind ]] && { _gantry_values "$kind" "$current"; return; }
  [[ " ${_gantry_wanting[$place]} " == *" $previous "* ]] && return
  kind=${_gantry_kinds["$place "]}
  [[ -n $kind && $current != -* ]] && { _gantry_values "$kind" "$current"; return; }
  mapfile -t COMPREPLY < <(compgen -W "${_gantry_words[$place]}" -- "$current")
}
complete -o default -F _gantry gantry
)script";

// A subscript that contains a space needs the braces.
constexpr const char* kZshBody = R"script(
_gantry() {
  local place=gantry word kind
  [[ $words[CURRENT-1] == --root ]] && { _files -/; return }
  for word in ${words[2,CURRENT-1]}; do
    [[ $word == -- ]] && { [[ $words[CURRENT-1] == -- ]] && _command_names || _files; return }
    (( ${+_gantry_words[$place $word]} )) && place="$place $word"
  done
  kind=${_gantry_kinds[$place ${words[CURRENT-1]}]}
  if [[ " $_gantry_wanting[$place] " == *" $words[CURRENT-1] "* ]]; then
    [[ -z $kind ]] && { _files; return }
  elif [[ $words[CURRENT] != -* ]]; then
    kind=${_gantry_kinds[$place ]}
  fi
  [[ -n $kind ]] && { compadd -- ${(f)"$(gantry complete $kind 2>/dev/null)"}; return }
  compadd -- ${=_gantry_words[$place]} || _files
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _gantry "$@"; else compdef _gantry gantry; fi
)script";

// fish has no tables: __gantry_at tests the command that was typed so far.
constexpr const char* kFishHead = R"script(# fish completion for gantry
function __gantry_at
  set -l typed (commandline -opc)
  set -l place gantry
  for word in $typed[2..-1]
    contains -- "$place $word" $__gantry_places; and set place "$place $word"
  end
  test "$place" = "$argv"
end
)script";

std::string_view value_kind(const CommandPlace& place, std::string_view option) {
  for (const auto& value : kValueKinds) {
    if (value.command == place.path && value.option == option) return value.kind;
  }
  return "";
}

std::string fish_option(const CommandPlace& place, std::string_view word) {
  const bool wants = (" " + place.wanting).find(fmt::format(" {} ", word)) != std::string::npos;
  const auto kind = value_kind(place, word);
  const auto values = !kind.empty()      ? fmt::format(" -f -a '(gantry complete {})'", kind)
                      : word == "--root" ? std::string(" -f -a '(__fish_complete_directories)'")
                                         : std::string(" -F");
  return fmt::format("complete -c gantry -n '__gantry_at {}' -l {}{}\n", place.path, word.substr(2),
                     wants ? " -r" + values : "");
}

std::string fish_script(const std::vector<CommandPlace>& places) {
  std::string text = kFishHead;
  text += "set -g __gantry_places";
  for (const auto& place : places) text += fmt::format(" '{}'", place.path);
  text += "\ncomplete -c gantry -f\n";
  for (const auto& place : places) {
    if (const auto kind = value_kind(place, ""); !kind.empty()) {
      text += fmt::format("complete -c gantry -n '__gantry_at {}' -a '(gantry complete {})'\n",
                          place.path, kind);
    }
    for (const auto& word : CLI::detail::split(place.words, ' ')) {
      if (word.empty()) continue;
      text += word.starts_with("--")
                  ? fish_option(place, word)
                  : fmt::format("complete -c gantry -n '__gantry_at {}' -a {}\n", place.path, word);
    }
  }
  return text;
}

std::string script(const CLI::App& app, const std::string& shell) {
  std::vector<CommandPlace> places;
  collect(app, "gantry", places);
  if (shell == "fish") return fish_script(places);
  const bool zsh = shell == "zsh";
  const auto row = [&](std::string_view key, std::string_view value) {
    return zsh ? fmt::format("  '{}' '{}'\n", key, value)
               : fmt::format("  [\"{}\"]=\"{}\"\n", key, value);
  };
  const auto table = [&](const char* name, const std::string& rows) {
    return fmt::format("{} -gA {}=(\n{})\n", zsh ? "typeset" : "declare", name, rows);
  };
  std::string words;
  std::string wanting;
  std::string kinds;
  for (const auto& place : places) {
    words += row(place.path, place.words);
    wanting += row(place.path, place.wanting);
  }
  for (const auto& value : kValueKinds) {
    kinds += row(fmt::format("{} {}", value.command, value.option), value.kind);
  }
  return fmt::format("{}\n{}{}{}{}", zsh ? "#compdef gantry" : "# bash completion for gantry",
                     table("_gantry_words", words), table("_gantry_wanting", wanting),
                     table("_gantry_kinds", kinds), zsh ? kZshBody : kBashBody);
}

// The share daemon is not asked: it may not run, and completion must not start it. A user who may
// not read the directory gets no names.
std::vector<std::string> share_names(const Context& context) {
  const auto host = open_host(context);
  if (!host.ok()) return {};
  const auto names = host->list("/run/gantry/shares");
  return names.ok() ? *names : std::vector<std::string>();
}

Result<std::vector<std::string>> values_of(const std::string& kind, const Context& context) {
  std::vector<std::string> names;
  if (kind == "shares") return share_names(context);
  if (kind == "shells") return std::vector<std::string>{"bash", "fish", "zsh"};
  if (kind == "flavours") return std::vector<std::string>{"open", "proprietary"};
  if (kind == "sources")
    return std::vector<std::string>{"run", "packages", "precompiled", "grid", "nvidia-container"};
  if (kind == "engines") {
    for (const auto engine : {engines::Engine::Docker, engines::Engine::Containerd,
                              engines::Engine::Crio, engines::Engine::Podman})
      names.emplace_back(to_string(engine));
  } else if (kind == "distributions") {
    for (const auto distribution :
         {engines::Distribution::Auto, engines::Distribution::Plain, engines::Distribution::K3s,
          engines::Distribution::Rke2, engines::Distribution::Microk8s, engines::Distribution::K0s})
      names.emplace_back(to_string(distribution));
  } else if (kind == "machines") {
    for (const auto& machine : sim::machine_catalog()) names.emplace_back(machine.name);
  } else if (kind == "findings") {
    for (const auto& finding : preflight::known_findings()) {
      if (finding.ignorable == preflight::Ignorable::Yes) names.emplace_back(finding.code);
    }
  } else if (kind == "checks") {
    for (const auto* check : doctor::all_checks()) names.emplace_back(check->id);
  } else {
    return Error(Errc::Invalid, fmt::format("there are no values of kind `{}`", kind));
  }
  return names;
}

void add_complete(CLI::App& app, Action& chosen) {
  auto kind = std::make_shared<std::string>();
  auto* command = app.add_subcommand("complete", "Print values for the completion scripts");
  command->group("");  // hidden
  command
      ->add_option("kind", *kind,
                   "machines, checks, engines, distributions, findings, flavours, shares, shells, "
                   "sources")
      ->required();
  command->callback([kind, &chosen] {
    chosen = [kind](Context& context) -> Result<int> {
      GANTRY_TRY(const auto names, values_of(*kind, context));
      for (const auto& name : names) fmt::print(context.out, "{}\n", name);
      return kOk;
    };
  });
}

}  // namespace

void add_completion(CLI::App& app, Context&, Action& chosen) {
  auto shell = std::make_shared<std::string>();
  auto* command = app.add_subcommand("completion", "Print the completion script of a shell");
  command->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  add_examples(*command,
               "  gantry completion bash > /etc/bash_completion.d/gantry\n"
               "  gantry completion zsh > /usr/share/zsh/site-functions/_gantry\n"
               "  gantry completion fish > /etc/fish/completions/gantry.fish\n");
  command->callback([shell, &app, &chosen] {
    chosen = [shell, &app](Context& context) -> Result<int> {
      fmt::print(context.out, "{}", script(app, *shell));
      return kOk;
    };
  });
  add_complete(app, chosen);
}

}  // namespace gantry::cli
