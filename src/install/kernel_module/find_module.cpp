// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "install/kernel_module/module_file.hpp"

#include <fmt/format.h>

#include <array>
#include <vector>

namespace gantry::kernel_module {
namespace {

constexpr std::array kDirectories{"updates/dkms",
                                  "updates",
                                  "extra",
                                  "extra/nvidia",
                                  "kernel/drivers/video",
                                  "kernel/drivers/char/drm",
                                  "kernel/nvidia",
                                  "weak-updates",
                                  "misc",
                                  "weak-updates/updates"};
constexpr std::array kSuffixes{".ko", ".ko.xz", ".ko.zst", ".ko.gz"};

std::string in_directory(const sys::Host& host, const std::string& directory,
                         std::string_view name) {
  for (std::string_view suffix : kSuffixes) {
    auto path = fmt::format("{}/{}{}", directory, name, suffix);
    if (host.exists(path)) return path;
  }
  return "";
}

std::vector<std::uint64_t> numbers_of(std::string_view release) {
  std::vector<std::uint64_t> numbers;
  std::size_t at = 0;
  while (at < release.size()) {
    std::size_t end = at;
    while (end < release.size() && release[end] >= '0' && release[end] <= '9') ++end;
    if (end > at) numbers.push_back(parse_u64(release.substr(at, end - at)).value_or(0));
    at = end + 1;
  }
  return numbers;
}

}  // namespace

std::string find_module_file(const sys::Host& host, std::string_view release,
                             std::string_view name) {
  if (release.empty() || contains(release, "/")) return "";
  const auto base = fmt::format("/lib/modules/{}", release);
  for (std::string_view directory : kDirectories) {
    auto path = in_directory(host, fmt::format("{}/{}", base, directory), name);
    if (!path.empty()) return path;
  }
  // Each driver branch's package has its own directory: kernel/nvidia-550, kernel/nvidia-535srv.
  const auto names = host.list(base + "/kernel");
  if (!names.ok()) return "";
  for (const auto& directory : *names) {
    if (!directory.starts_with("nvidia-")) continue;
    auto path = in_directory(host, fmt::format("{}/kernel/{}", base, directory), name);
    if (!path.empty()) return path;
  }
  return "";
}

bool newer_release(std::string_view a, std::string_view b) {
  return numbers_of(a) > numbers_of(b);
}

std::optional<std::uint64_t> parse_option_number(std::string_view text) {
  if (text.starts_with("0x") || text.starts_with("0X")) return parse_u64(text.substr(2), 16);
  if (text.size() > 1 && text.front() == '0') return parse_u64(text, 8);
  return parse_u64(text);
}

}  // namespace gantry::kernel_module
