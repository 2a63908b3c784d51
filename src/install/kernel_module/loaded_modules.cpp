// SPDX-License-Identifier: Apache-2.0
#include "install/kernel_module/loaded_modules.hpp"

#include "base/core/text.hpp"

#include <algorithm>
#include <climits>

namespace gantry::kernel_module {
namespace {

constexpr std::size_t kMaxModules = 4096;
constexpr std::string_view kModulesFile = "/proc/modules";

// "nvidia_modeset 1306624 2 nvidia_drm,[permanent], Live 0x0000000000000000 (POE)"
bool parse_line(std::string_view line, LoadedModule& module) {
  const auto words = split(line, ' ');
  if (words.size() < 5) return false;
  const auto bytes = parse_u64(words[1]);
  const auto references = parse_u64(words[2]);
  if (words[0].empty() || !bytes || (!references && words[2] != "-")) return false;
  module.name = words[0];
  module.bytes = *bytes;
  module.references =
      references ? static_cast<int>(std::min<std::uint64_t>(*references, INT_MAX)) : -1;
  module.state = words[4];
  for (const auto user : split(words[3], ',')) {
    if (user == "[permanent]") {
      module.permanent = true;
    } else if (!user.empty() && user != "-") {
      module.users.emplace_back(user);
    }
  }
  return true;
}

}  // namespace

std::string module_name(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

std::vector<LoadedModule> parse_modules(std::string_view text) {
  std::vector<LoadedModule> modules;
  for (const auto line : lines(text)) {
    LoadedModule module;
    if (parse_line(line, module)) modules.push_back(std::move(module));
    if (modules.size() == kMaxModules) break;
  }
  return modules;
}

Result<std::vector<LoadedModule>> read_loaded_modules(const sys::Host& host) {
  const auto text = host.read(kModulesFile);
  if (text.ok()) return parse_modules(*text);
  if (text.error().code() == Errc::NotFound) return std::vector<LoadedModule>();
  return text.error();
}

const LoadedModule* find_loaded(const std::vector<LoadedModule>& loaded, std::string_view name) {
  const auto wanted = module_name(name);
  const auto found = std::find_if(loaded.begin(), loaded.end(),
                                  [&](const LoadedModule& m) { return m.name == wanted; });
  return found == loaded.end() ? nullptr : &*found;
}

}  // namespace gantry::kernel_module
