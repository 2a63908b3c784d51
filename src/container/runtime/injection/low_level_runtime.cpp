// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/injection/low_level_runtime.hpp"

#include "base/core/text.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::runtime {
namespace {

constexpr const char* kOurselves = "/proc/self/exe";

bool is_executable_file(const std::string& path, struct stat& info) {
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

// Some installers put us at runc's path: executing ourselves would be an endless loop.
bool is_ourselves(const struct stat& info) {
  struct stat own {};
  return ::stat(kOurselves, &own) == 0 && own.st_dev == info.st_dev && own.st_ino == info.st_ino;
}

bool usable(const std::string& path) {
  struct stat info {};
  return is_executable_file(path, info) && !is_ourselves(info);
}

std::vector<std::string_view> places(std::string_view search_path,
                                     std::span<const std::string_view> usual_places) {
  std::vector<std::string_view> result;
  for (const auto directory : split(search_path, ':')) {
    if (directory.starts_with('/')) result.push_back(directory);  // never the working directory
  }
  for (const auto directory : usual_places) {
    if (std::find(result.begin(), result.end(), directory) == result.end()) {
      result.push_back(directory);
    }
  }
  return result;
}

}  // namespace

Result<std::string> find_low_level(const std::vector<std::string>& candidates,
                                   std::string_view search_path,
                                   std::span<const std::string_view> usual_places) {
  const auto directories = places(search_path, usual_places);
  for (const auto& candidate : candidates) {
    if (contains(candidate, "/")) {
      if (usable(candidate)) return candidate;
      continue;
    }
    for (const auto directory : directories) {
      auto path = fmt::format("{}/{}", directory, candidate);
      if (usable(path)) return path;
    }
  }
  return Error(
      Errc::NotFound,
      fmt::format("no low-level runtime found: none of {} is in {}; install runc, or name one in "
                  "`runtimes` under [nvidia-container-runtime] of config.toml",
                  fmt::join(candidates, ", "), fmt::join(directories, ":")));
}

std::string own_program_path(std::string_view name) {
  std::array<char, 4096> own{};
  const auto length = ::readlink(kOurselves, own.data(), own.size());
  if (length <= 0 || static_cast<std::size_t>(length) == own.size()) return {};
  std::string_view path(own.data(), static_cast<std::size_t>(length));
  auto result = fmt::format("{}/{}", path.substr(0, path.rfind('/')), name);
  struct stat info {};
  return is_executable_file(result, info) ? result : std::string();
}

std::string sibling_program_path(std::string_view name) {
  auto path = own_program_path(name);
  return usable(path) ? path : std::string();
}

}  // namespace gantry::runtime
