// SPDX-License-Identifier: Apache-2.0
#include "cluster/explain/manifest_objects.hpp"

#include "base/core/text.hpp"
#include "base/json/writer.hpp"
#include "base/yaml/value.hpp"
#include "cluster/explain/manifest.hpp"

#include <set>

namespace gantry::explain {
namespace {

// A CustomResourceDefinition is nested some 40 levels deep; a rendered chart has hundreds of
// documents. The depth stays below json::kDepthLimit, the values below json::kValueLimit.
constexpr yaml::Limits kManifestLimits{.bytes = kMaxManifestBytes,
                                       .values = 400'000,
                                       .depth = 100,
                                       .aliases = yaml::AliasPolicy::Copy,
                                       .tags = yaml::TagPolicy::Ignore,
                                       .documents = 4096};

void write_json(json::Writer& out, const yaml::Value& value);

void write_entries(json::Writer& out, const yaml::Value& map, std::set<std::string_view>& written);

// The value of "<<": a map, or a list of maps.
void write_merged(json::Writer& out, const yaml::Value& merged,
                  std::set<std::string_view>& written) {
  if (merged.kind == yaml::Value::Kind::Map) write_entries(out, merged, written);
  for (const auto& item : merged.items) {
    if (item.kind == yaml::Value::Kind::Map) write_entries(out, item, written);
  }
}

// The map's own entries come before merged ones of the same name.
void write_entries(json::Writer& out, const yaml::Value& map, std::set<std::string_view>& written) {
  constexpr std::string_view kMergeKey = "<<";
  for (const auto& entry : map.entries) {
    if (entry.key == kMergeKey || !written.insert(entry.key).second) continue;
    out.key(entry.key);
    write_json(out, entry.value);
  }
  if (const auto* merged = map.find(kMergeKey)) write_merged(out, *merged, written);
}

void write_json(json::Writer& out, const yaml::Value& value) {
  using Kind = yaml::Value::Kind;
  switch (value.kind) {
    case Kind::Null: return out.value(nullptr);
    case Kind::Scalar:
      if (!value.quoted && (value.text == "true" || value.text == "false"))
        return out.raw(value.text);
      return out.value(value.text);
    case Kind::List:
      return out.array(value.items, [&](const yaml::Value& item) { write_json(out, item); });
    case Kind::Map: break;
  }
  out.object([&] {
    std::set<std::string_view> written;
    write_entries(out, value, written);
  });
}

}  // namespace

Result<std::vector<json::Document>> manifest_objects(std::string_view text,
                                                     const std::string& file) {
  std::vector<json::Document> objects;
  if (trim(text).starts_with('{')) {
    if (auto object = json::Document::parse(std::string(text)); object.ok()) {
      objects.push_back(*std::move(object));
      return objects;
    }
  }
  GANTRY_TRY(const auto documents, yaml::parse_all(text, file, kManifestLimits));
  for (const auto& document : documents) {
    json::Writer out;
    write_json(out, document);
    GANTRY_TRY(auto object, json::Document::parse(out.text()).in(file));
    objects.push_back(std::move(object));
  }
  return objects;
}

}  // namespace gantry::explain
