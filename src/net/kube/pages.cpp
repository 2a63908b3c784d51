// SPDX-License-Identifier: Apache-2.0
#include "net/kube/pages.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::kube {
namespace {

constexpr int kPages = 100'000;
constexpr int kObjects = 250;  // in a page
// By how much a page that was too large is made smaller. A server whose answers never end is given
// up after five tries of 8 MiB each.
constexpr int kSmaller = 4;

}  // namespace

Status each_page(const GetPage& get, const std::string& path, const OnPage& take) {
  std::string next;
  int objects = kObjects;
  for (int page = 0; page < kPages; ++page) {
    auto request = fmt::format("{}{}limit={}", path, contains(path, "?") ? "&" : "?", objects);
    if (!next.empty()) request += "&continue=" + percent_encode(next);
    const auto list = get(request);
    if (!list.ok() && list.error().code() == Errc::TooLarge && objects > 1) {
      objects = std::max(objects / kSmaller, 1);
      continue;
    }
    if (!list.ok()) return list.error();
    take(list->root());
    auto token = (*list)["metadata"]["continue"].string().value_or("");
    if (token.empty()) return {};
    if (token == next) break;
    next = std::move(token);
  }
  return Error(Errc::Corrupt, fmt::format("the list {} does not end", path));
}

Status each_page(Api& api, const std::string& path, const OnPage& take) {
  return each_page([&api](const std::string& request) { return api.get(request); }, path, take);
}

}  // namespace gantry::kube
