// SPDX-License-Identifier: Apache-2.0
#include "doctor/engine/document.hpp"

#include <algorithm>

namespace gantry::doctor {
namespace {

const Document& nothing() {
  static const Document empty;
  return empty;
}

}  // namespace

const Document& Document::at(std::string_view key) const {
  const auto found = std::find_if(members_.begin(), members_.end(),
                                  [&](const auto& member) { return member.first == key; });
  return found == members_.end() ? nothing() : found->second;
}

bool Document::has(std::string_view key) const {
  return std::any_of(members_.begin(), members_.end(),
                     [&](const auto& member) { return member.first == key; });
}

Document Document::scalar(std::string text) {
  Document document;
  document.text_ = std::move(text);
  return document;
}

void Document::add(std::string key, Document value) {
  members_.emplace_back(std::move(key), std::move(value));
}

void Document::add(Document item) {
  items_.push_back(std::move(item));
}

}  // namespace gantry::doctor
