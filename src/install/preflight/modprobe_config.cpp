// SPDX-License-Identifier: Apache-2.0
#include "install/preflight/modprobe_config.hpp"

#include "base/core/text.hpp"

#include <algorithm>
#include <array>

namespace gantry::preflight {
namespace {

constexpr std::array kDirectories{"/etc/modprobe.d", "/run/modprobe.d", "/usr/lib/modprobe.d",
                                  "/lib/modprobe.d"};
constexpr std::size_t kFileLimit = std::size_t{1} << 20U;

void add_lines(const sys::Host& host, const std::string& path, std::vector<ModprobeLine>& found) {
  const auto text = host.read(path, kFileLimit);
  if (!text.ok()) return;
  for (auto line : lines(*text)) {
    line = trim(line);
    if (!line.empty() && line.front() != '#') found.push_back({path, std::string(line)});
  }
}

}  // namespace

std::vector<ModprobeLine> read_modprobe_lines(const sys::Host& host) {
  std::vector<ModprobeLine> found;
  std::vector<std::string> seen;
  for (const std::string_view directory : kDirectories) {
    const auto names = host.list(directory);
    if (!names.ok()) continue;
    for (const auto& name : *names) {
      const bool hidden = std::find(seen.begin(), seen.end(), name) != seen.end();
      if (!name.ends_with(".conf") || hidden) continue;
      seen.push_back(name);
      add_lines(host, join_path(directory, name), found);
    }
  }
  return found;
}

bool forbids_module(std::string_view line, std::string_view module) {
  std::vector<std::string_view> words;
  for (const auto word : split(line, ' ')) {
    if (!word.empty()) words.push_back(word);
  }
  if (words.size() < 2 || words[1] != module) return false;
  if (words[0] == "blacklist") return true;
  if (words.size() < 3) return false;
  if (words[0] == "install") return words[2] == "/bin/false" || words[2] == "/bin/true";
  return words[0] == "alias" && words[2] == "off";
}

}  // namespace gantry::preflight
