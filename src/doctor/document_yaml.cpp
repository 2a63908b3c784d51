// SPDX-License-Identifier: Apache-2.0
#include "doctor/document.hpp"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

namespace gantry::doctor {
namespace {

// Aliases can make a small file a huge tree: values are counted, not bytes.
Result<Document> convert(const YAML::Node& node, int depth, int& values) {
  if (depth > kDocumentDepth) return Error(Errc::Corrupt, "YAML: nested too deeply");
  if (++values > kDocumentValues) return Error(Errc::Corrupt, "YAML: too many values");
  Document document;
  switch (node.Type()) {
    case YAML::NodeType::Scalar: return Document::scalar(node.Scalar());
    case YAML::NodeType::Sequence:
      for (const auto& item : node) {
        GANTRY_TRY(Document value, convert(item, depth + 1, values));
        document.add(std::move(value));
      }
      return document;
    case YAML::NodeType::Map:
      for (const auto& member : node) {
        if (!member.first.IsScalar()) continue;
        GANTRY_TRY(Document value, convert(member.second, depth + 1, values));
        document.add(member.first.Scalar(), std::move(value));
      }
      return document;
    default: return document;
  }
}

}  // namespace

Result<Document> parse_yaml(std::string_view text) {
  if (text.size() > kDocumentBytes) return Error(Errc::Corrupt, "YAML: too large");
  try {
    int values = 0;
    return convert(YAML::Load(std::string(text)), 0, values);
  } catch (const YAML::Exception& error) {
    return Error(Errc::Corrupt, fmt::format("YAML: line {}: {}", error.mark.line + 1, error.msg));
  }
}

}  // namespace gantry::doctor
