// SPDX-License-Identifier: Apache-2.0
#include "container/rootfs/follow_links.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <climits>
#include <vector>

namespace gantry::rootfs {
namespace {

constexpr int kMostLinks = 40;  // the kernel's own limit

// Puts the parts of a path on a stack, the first one on top.
void push_parts(std::string_view path, std::vector<std::string>& stack) {
  const auto parts = split(path, '/');
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (!part->empty() && *part != ".") stack.emplace_back(*part);
  }
}

}  // namespace

Result<std::string> follow_links(std::string_view path, const LinkReader& link_at) {
  std::vector<std::string> ahead;
  push_parts(path, ahead);
  std::string real;  // "" for "/"
  for (int links = 0; !ahead.empty();) {
    const std::string part = std::move(ahead.back());
    ahead.pop_back();
    if (part == "..") {
      real.erase(real.empty() ? 0 : real.rfind('/'));
      continue;
    }
    auto next = fmt::format("{}/{}", real, part);
    if (next.size() >= PATH_MAX) return Error::sys(ENAMETOOLONG, std::string(path));
    const auto target = link_at(next);
    if (!target) {
      real = std::move(next);
      continue;
    }
    if (++links > kMostLinks) return Error::sys(ELOOP, std::string(path));
    if (target->starts_with('/')) real.clear();
    push_parts(*target, ahead);
  }
  return real.empty() ? "/" : real;
}

}  // namespace gantry::rootfs
