// SPDX-License-Identifier: Apache-2.0
// A share as a JSON object: one member for each field of ShareText.
#include "base/json/document.hpp"
#include "sharing/policy/share.hpp"

#include <fmt/format.h>

#include <array>

namespace gantry::policy {
namespace {

struct Field {
  std::string_view key;
  std::string ShareText::*text;
};
constexpr std::array kFields{
    Field{"name", &ShareText::name},
    Field{"gpus", &ShareText::gpus},
    Field{"memory", &ShareText::memory},
    Field{"compute", &ShareText::compute},
    Field{"weight", &ShareText::weight},
    Field{"excess", &ShareText::excess},
    Field{"priority", &ShareText::priority},
    Field{"on-violation", &ShareText::on_violation},
    Field{"unattached", &ShareText::unattached},
    Field{"context-memory", &ShareText::context_memory},
    Field{"backend", &ShareText::backend},
};

Error corrupt(std::string_view what) {
  return {Errc::Corrupt, fmt::format("share: {}", what)};
}

// Accepts strings, and whole numbers if they are written without quotes: "weight": 200.
Result<std::string> word_in(json::Value value) {
  if (auto text = value.string()) return *std::move(text);
  if (const auto number = value.u64()) return fmt::format("{}", *number);
  return corrupt(fmt::format("`{}` is {}, not a string: \"{}\": \"...\"", value.key(),
                             json::to_string(value.kind()), value.key()));
}

Status read_field(json::Value value, ShareText& text) {
  for (const auto& field : kFields) {
    if (value.key() != field.key) continue;
    GANTRY_TRY(text.*field.text, word_in(value));
    return {};
  }
  std::string known;
  for (const auto& field : kFields) known += fmt::format(" {}", field.key);
  return corrupt(fmt::format("there is no `{}`; the known keys are:{}", value.key(), known));
}

}  // namespace

std::string to_json(const Share& share) {
  const auto text = to_share_text(share);
  std::string json;
  for (const auto& field : kFields) {
    if ((text.*field.text).empty()) continue;
    json += fmt::format("{}{}:{}", json.empty() ? "{" : ",", json::quote(field.key),
                        json::quote(text.*field.text));
  }
  return json + "}";
}

Result<Share> share_from_json(std::string_view text) {
  if (text.size() > kMaxJsonLength) return corrupt("is too long for a share");
  GANTRY_TRY(const auto document, json::Document::parse(std::string(text)).in("share"));
  if (!document.root().is(json::Kind::Object)) return corrupt("is not an object");
  ShareText words;
  for (const auto member : document.root()) GANTRY_CHECK(read_field(member, words));
  return parse_share(words);
}

}  // namespace gantry::policy
