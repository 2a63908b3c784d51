// SPDX-License-Identifier: Apache-2.0
// The text of a placement:
// {"containers":[{"name":"train","gpus":[{"uuid":"GPU-1a","index":0,"mib":10240,"cores":30}]}]}
#include "cluster/podspec/placement.hpp"

#include "base/core/printable.hpp"
#include "base/json/writer.hpp"
#include "cluster/podspec/limits_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace gantry::podspec {
namespace {

// The limit for all annotations of an object.
constexpr std::size_t kPartLimit = 4096;

Error corrupt_placement(std::string_view what) {
  return {Errc::Corrupt, fmt::format("{}: {}", kPlacementAnnotation, what)};
}

Status only(const json::Value& object, std::initializer_list<std::string_view> keys) {
  if (!object.is(json::Kind::Object))
    return corrupt_placement(
        fmt::format("expected an object, found {}", json::to_string(object.kind())));
  for (const auto member : object) {
    const auto key = member.key();
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      return corrupt_placement(
          fmt::format("\"{}\" is not a known key", printable(key.substr(0, 64))));
  }
  return {};
}

Result<std::uint64_t> required_number(const json::Value& object, std::string_view key,
                                      std::uint64_t most) {
  const auto value = object[key].u64();
  if (!value || *value > most)
    return corrupt_placement(fmt::format("{} is not a number up to {}", key, most));
  return *value;
}

Result<model::GpuShare> part_from(const json::Value& value) {
  GANTRY_CHECK(only(value, {"uuid", "index", "mib", "cores"}));
  model::GpuShare part;
  part.uuid.text = value["uuid"].string().value_or("");
  if (part.uuid.text.empty() || part.uuid.text.size() > kMaxNameBytes)
    return corrupt_placement("a GPU without a UUID");
  GANTRY_TRY(const auto index, required_number(value, "index", kMaxGpusPerContainer));
  GANTRY_TRY(part.mib, required_number(value, "mib", kMaxMemoryMib));
  GANTRY_TRY(const auto cores, required_number(value, "cores", 100));
  part.index = static_cast<std::uint32_t>(index);
  part.cores = static_cast<std::uint32_t>(cores);
  return part;
}

Result<ContainerPlacement> container_from(const json::Value& value) {
  GANTRY_CHECK(only(value, {"name", "gpus"}));
  ContainerPlacement placed;
  placed.container = value["name"].string().value_or("");
  if (placed.container.empty()) return corrupt_placement("a container without a name");
  const auto gpus = value["gpus"];
  if (!gpus.is(json::Kind::Array) || gpus.size() == 0)
    return corrupt_placement(
        fmt::format("container \"{}\" has no GPUs", printable(placed.container.substr(0, 64))));
  std::set<model::GpuUuid> seen;
  for (const auto gpu : gpus) {
    GANTRY_TRY(auto part, part_from(gpu));
    if (!seen.insert(part.uuid).second)
      return corrupt_placement(
          fmt::format("one container has GPU {} twice", printable(part.uuid.text)));
    placed.parts.push_back(std::move(part));
  }
  return placed;
}

}  // namespace

std::string to_json(const Placement& placement) {
  json::Writer out;
  const auto write_part = [&](const model::GpuShare& part) {
    out.object([&] {
      out.member("uuid", part.uuid.text);
      out.member("index", part.index);
      out.member("mib", part.mib);
      out.member("cores", part.cores);
    });
  };
  const auto write_container = [&](const ContainerPlacement& placed) {
    out.object([&] {
      out.member("name", placed.container);
      out.array("gpus", placed.parts, write_part);
    });
  };
  out.object([&] { out.array("containers", placement, write_container); });
  return std::move(out).text();
}

Result<Placement> parse_placement(std::string_view text) {
  if (text.size() > kMaxAnnotationBytes)
    return corrupt_placement(fmt::format("more than {} bytes", kMaxAnnotationBytes));
  GANTRY_TRY(const auto document,
             json::Document::parse(std::string(text)).in(kPlacementAnnotation));
  GANTRY_CHECK(only(document.root(), {"containers"}));
  const auto containers = document["containers"];
  if (!containers.is(json::Kind::Array) || containers.size() == 0)
    return corrupt_placement("the list of containers is missing");
  Placement placement;
  std::set<std::string> names;
  std::size_t parts = 0;
  for (const auto value : containers) {
    GANTRY_TRY(auto placed, container_from(value));
    if (!names.insert(placed.container).second)
      return corrupt_placement(fmt::format("container \"{}\" is listed twice",
                                           printable(placed.container.substr(0, 64))));
    parts += placed.parts.size();
    if (parts > kPartLimit) return corrupt_placement(fmt::format("more than {} GPUs", kPartLimit));
    placement.push_back(std::move(placed));
  }
  return placement;
}

}  // namespace gantry::podspec
