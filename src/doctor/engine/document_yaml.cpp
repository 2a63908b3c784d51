// SPDX-License-Identifier: Apache-2.0
#include "base/yaml/value.hpp"
#include "doctor/engine/document.hpp"

namespace gantry::doctor {
namespace {

Document document_from_yaml(const yaml::Value& value) {
  if (value.kind == yaml::Value::Kind::Scalar) return Document::scalar(value.text);
  Document document;
  for (const auto& item : value.items) document.add(document_from_yaml(item));
  for (const auto& [key, member] : value.entries) document.add(key, document_from_yaml(member));
  return document;
}

}  // namespace

Result<Document> parse_yaml(std::string_view text) {
  const yaml::Limits limits{.bytes = kMaxDocumentBytes,
                            .values = kMaxDocumentValues,
                            .depth = kMaxDocumentDepth,
                            .aliases = yaml::AliasPolicy::Copy};
  GANTRY_TRY(const auto root, yaml::parse(text, "YAML", limits));
  return document_from_yaml(root);
}

}  // namespace gantry::doctor
