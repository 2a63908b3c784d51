// SPDX-License-Identifier: Apache-2.0
#include "base/sys/shell_command.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::sys {
namespace {

// The commands of gantry that take --root. A test compares the list with the commands themselves.
constexpr std::array kCommandsWithRoot{"agent",          "cdi generate",
                                       "cdi list",       "cdi refresh",
                                       "cdi validate",   "config check",
                                       "config default", "config set",
                                       "config show",    "doctor",
                                       "driver build",   "driver install",
                                       "driver load",    "driver preflight",
                                       "driver remove",  "driver status",
                                       "driver upgrade", "driver verify",
                                       "explain",        "gpu reset",
                                       "info",           "list",
                                       "mig apply",      "mig assert",
                                       "mig export",     "mig list",
                                       "mig plan",       "mig restore",
                                       "node down",      "node up",
                                       "report",         "runtime configure",
                                       "share create",   "share explain",
                                       "share ls",       "share rm",
                                       "share run",      "share serve",
                                       "share set",      "share top",
                                       "share watch",    "sim create",
                                       "sim inject",     "sim rm",
                                       "sim run",        "sim state",
                                       "sim use",        "topo",
                                       "vfio bind",      "vfio list",
                                       "vfio plan",      "vfio recover",
                                       "vfio release",   "vfio restore",
                                       "vfio status",    "vgpu apply",
                                       "vgpu assert",    "vgpu create",
                                       "vgpu list",      "vgpu remove",
                                       "vgpu types",     "vm check",
                                       "vm config",      "why container",
                                       "why image",      "why manifest",
                                       "why pod"};

constexpr std::string_view kProgram = "gantry ";

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || c == '-';
}

// The length of the command at the start of the text: 11 for "cdi refresh --take-over". 0 if it
// takes no root.
std::size_t command_size(std::string_view text) {
  for (const std::string_view command : kCommandsWithRoot) {
    const auto rest = text.substr(std::min(command.size(), text.size()));
    if (text.starts_with(command) && (rest.empty() || !is_word(rest.front()))) {
      return command.size();
    }
  }
  return 0;
}

bool begins_word(std::string_view text, std::size_t at) {
  return at == 0 || contains("/ `'\"(:;|&\n", text.substr(at - 1, 1));
}

// --host-root is the name that the driver's commands also have for it.
bool names_root(std::string_view command) {
  const auto words = command.substr(0, command.find_first_of("`;|&#\n"));
  return contains(words, "--root") || contains(words, "--host-root");
}

// Returns true if all the remedy does is to call gantry or kubectl, which know the machine.
bool only_calls_gantry(std::string_view remedy) {
  remedy = remedy.substr(0, remedy.find(" #"));
  while (!remedy.empty()) {
    const auto end = remedy.find_first_of(";|&");
    auto command = trim(remedy.substr(0, end));
    if (command.starts_with("sudo ")) command.remove_prefix(5);
    if (!command.empty() && !command.starts_with(kProgram) && !command.starts_with("kubectl ")) {
      return false;
    }
    remedy = end == std::string_view::npos ? "" : remedy.substr(end + 1);
  }
  return true;
}

// A fault that was injected is cleared; a machine that was created broken is created again.
std::string simulated_remedy(const Host& host, std::string_view marker) {
  constexpr std::string_view kHealthy = "healthy ";
  for (const auto line : lines(marker)) {
    if (!line.starts_with(kHealthy)) continue;
    return fmt::format("gantry sim create {} --force{}", shell_word(line.substr(kHealthy.size())),
                       root_flag(host));
  }
  return fmt::format("gantry sim inject{} clear", root_flag(host));
}

}  // namespace

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:,@%=";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(text);
  }
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string root_flag(std::string_view root) {
  return root.empty() || root == "/" ? "" : " --root " + shell_word(root);
}

std::string with_root(std::string_view text, std::string_view root) {
  const auto flag = root_flag(root);
  std::string result;
  std::size_t copied = 0;
  for (auto at = flag.empty() ? std::string_view::npos : text.find(kProgram);
       at != std::string_view::npos; at = text.find(kProgram, at + 1)) {
    const auto size = command_size(text.substr(at + kProgram.size()));
    if (size == 0 || !begins_word(text, at) || names_root(text.substr(at))) continue;
    const auto end = at + kProgram.size() + size;
    result += text.substr(copied, end - copied);
    result += flag;
    copied = end;
  }
  return result + std::string(text.substr(copied));
}

std::string on_machine(const Host& host, std::string_view command) {
  return fmt::format("{}{}", host.is_live() ? "" : "on that machine: ", command);
}

std::string remedy_for(const Host& host, std::string_view remedy) {
  if (host.is_live() || remedy.empty()) return std::string(remedy);
  if (only_calls_gantry(remedy)) return with_root(remedy, host.root());
  const auto marker = host.read("/.gantry-sim", 4096);
  if (!marker.ok()) return on_machine(host, remedy);
  return fmt::format("{}  # on a real machine: {}", simulated_remedy(host, *marker), remedy);
}

}  // namespace gantry::sys
