// SPDX-License-Identifier: Apache-2.0
#include "install/driver_setup/module_options.hpp"

#include "base/core/text.hpp"
#include "install/kernel_module/loaded_modules.hpp"

#include <fmt/format.h>

#include <array>
#include <map>
#include <vector>

namespace gantry::driver_setup {
namespace {

constexpr std::size_t kOptionsFileLimit = std::size_t{256} << 10;
constexpr std::size_t kMostOptionFiles = 512;
constexpr std::size_t kOptionsLimit = 4000;  // the kernel takes one page

// A file hides one of the same name in a directory after its own.
constexpr std::array<std::string_view, 5> kOptionDirectories{
    "/etc/modprobe.d", "/run/modprobe.d", "/usr/local/lib/modprobe.d", "/usr/lib/modprobe.d",
    "/lib/modprobe.d"};

void append_word(std::string& words, std::string_view word) {
  if (word.empty() || words.size() + word.size() > kOptionsLimit) return;
  if (!words.empty()) words += ' ';
  words += word;
}

std::string join_continued_lines(std::string_view text) {
  std::string joined(text);
  for (auto at = joined.find("\\\n"); at != std::string::npos; at = joined.find("\\\n", at))
    joined.replace(at, 2, " ");
  return joined;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  std::size_t at = 0;
  while (at < line.size()) {
    const auto begin = line.find_first_not_of(" \t\r", at);
    if (begin == std::string_view::npos) break;
    at = std::min(line.find_first_of(" \t\r", begin), line.size());
    words.push_back(line.substr(begin, at - begin));
  }
  return words;
}

// By name, as modprobe sorts them; the path of each is in the first directory that has it.
std::map<std::string, std::string> option_files(const sys::Host& host) {
  std::map<std::string, std::string> files;
  for (const auto directory : kOptionDirectories) {
    const auto names = host.list(directory);
    if (!names.ok()) continue;
    for (const auto& name : *names) {
      if (name.ends_with(".conf") && files.size() < kMostOptionFiles)
        files.emplace(name, fmt::format("{}/{}", directory, name));
    }
  }
  return files;
}

}  // namespace

std::string options_in_file(std::string_view text, std::string_view module) {
  const auto wanted = kernel_module::module_name(module);
  const auto joined = join_continued_lines(text);
  std::string options;
  for (const auto line : lines(joined)) {
    const auto words = words_of(line);
    if (words.size() < 3 || words[0] != "options") continue;
    if (kernel_module::module_name(words[1]) != wanted) continue;
    for (std::size_t i = 2; i < words.size(); ++i) append_word(options, words[i]);
  }
  return options;
}

std::string options_in_command_line(std::string_view text, std::string_view module) {
  const auto wanted = kernel_module::module_name(module);
  std::string options;
  for (const auto word : words_of(trim(text))) {
    const auto dot = word.find('.');
    const auto equals = word.find('=');
    if (dot == std::string_view::npos || dot > equals) continue;
    if (kernel_module::module_name(word.substr(0, dot)) == wanted)
      append_word(options, word.substr(dot + 1));
  }
  return options;
}

std::string module_options(const sys::Host& host, std::string_view module) {
  std::string options;
  for (const auto& [name, path] : option_files(host)) {
    const auto text = host.read(path, kOptionsFileLimit);
    if (text.ok()) append_word(options, options_in_file(*text, module));
  }
  const auto command_line = host.read("/proc/cmdline", kOptionsFileLimit);
  if (command_line.ok()) append_word(options, options_in_command_line(*command_line, module));
  return options;
}

}  // namespace gantry::driver_setup
