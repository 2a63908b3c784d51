// SPDX-License-Identifier: Apache-2.0
#include "base/json/writer.hpp"
#include "cluster/admission/edits_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gantry::admission {
namespace {

// RFC 6901.
std::string pointer(const json::Path& path) {
  std::string text;
  for (const auto& step : path) {
    text += '/';
    if (step.is_index) {
      text += fmt::to_string(step.index);
      continue;
    }
    for (const char c : step.key) {
      if (c == '~') {
        text += "~0";
      } else if (c == '/') {
        text += "~1";
      } else {
        text += c;
      }
    }
  }
  return text;
}

// Later elements first, so that the indexes of the remaining ones stay valid.
bool goes_first(const json::Path& one, const json::Path& other) {
  return std::lexicographical_compare(other.begin(), other.end(), one.begin(), one.end(),
                                      [](const json::Step& a, const json::Step& b) {
                                        return a.is_index && b.is_index ? a.index < b.index
                                                                        : a.key < b.key;
                                      });
}

}  // namespace

void PodEdits::set(json::Path path, std::string value) {
  sets_.push_back({std::move(path), std::move(value)});
}

void PodEdits::remove(json::Path path) {
  removals_.push_back(std::move(path));
}

std::string PodEdits::text() const {
  auto removals = removals_;
  std::sort(removals.begin(), removals.end(), goes_first);
  json::Writer out;
  out.array([&] {
    for (const auto& set : sets_) {
      out.object([&] {
        out.member("op", "add");
        out.member("path", pointer(set.path));
        out.raw_member("value", set.value);
      });
    }
    for (const auto& path : removals) {
      out.object([&] {
        out.member("op", "remove");
        out.member("path", pointer(path));
      });
    }
  });
  return std::move(out).text();
}

Result<std::string> PodEdits::applied(const json::Document& document) const {
  json::Patch patch;
  for (const auto& set : sets_) patch.set(set.path, set.value);
  for (const auto& path : removals_) patch.remove(path);
  return patch.apply(document);
}

}  // namespace gantry::admission
