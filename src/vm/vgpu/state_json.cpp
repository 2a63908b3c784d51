// SPDX-License-Identifier: Apache-2.0
// The text form of what is stored.
#include "base/core/text.hpp"
#include "base/json/document.hpp"
#include "base/json/writer.hpp"
#include "vm/vgpu/state.hpp"

#include <fmt/format.h>

namespace gantry::vgpu {
namespace {

constexpr std::uint64_t kStateVersion = 1;
constexpr std::size_t kMaxText = 256;

Error corrupt(std::string_view text) {
  return {Errc::Corrupt, std::string(text)};
}

Result<json::Document> parse_versioned(std::string_view text) {
  GANTRY_TRY(auto document, json::Document::parse(std::string(text)));
  const auto version = document["version"].u64();
  if (!version) return corrupt("it has no version");
  if (*version > kStateVersion) {
    return Error(Errc::Unsupported,
                 fmt::format("it was written by a newer gantry (version {})", *version));
  }
  return document;
}

Result<model::PciAddress> address_in(json::Value value) {
  const auto address = model::PciAddress::parse(value.string_or_empty());
  if (!address) return corrupt(fmt::format("{} is not a PCI address", value.raw()));
  return *address;
}

Result<VgpuSpec> parse_spec(json::Value value) {
  VgpuSpec spec;
  GANTRY_TRY(spec.gpu, address_in(value["gpu"]));
  GANTRY_TRY(spec.parent, address_in(value["parent"]));
  spec.type = value["type"].string_or_empty();
  spec.type_id = value["typeId"].string_or_empty();
  spec.uuid = value["uuid"].string_or_empty();
  if (spec.type.size() > kMaxText || spec.type_id.empty() || spec.type_id.size() > kMaxText)
    return corrupt("a vGPU has no type");
  if (!spec.uuid.empty() && !is_uuid(spec.uuid))
    return corrupt(fmt::format("`{}` is not a UUID", spec.uuid.substr(0, 64)));
  return spec;
}

Result<std::vector<VgpuSpec>> parse_specs(json::Value array) {
  std::vector<VgpuSpec> specs;
  if (!array.is(json::Kind::Array)) return corrupt("the list of vGPUs is missing");
  if (array.size() > kMaxStoredVgpus) return corrupt("it has too many vGPUs");
  for (const auto value : array) {
    GANTRY_TRY(auto spec, parse_spec(value));
    specs.push_back(std::move(spec));
  }
  return specs;
}

void write_specs(json::Writer& out, std::string_view name, const std::vector<VgpuSpec>& specs) {
  out.array(name, specs, [&](const VgpuSpec& spec) {
    out.object([&] {
      out.member("gpu", spec.gpu.sysfs());
      out.member("parent", spec.parent.sysfs());
      out.member("type", spec.type);
      out.member("typeId", spec.type_id);
      if (!spec.uuid.empty()) out.member("uuid", spec.uuid);
    });
  });
}

}  // namespace

std::string to_json(const Intent& intent) {
  json::Writer out(json::Layout::Indented);
  out.object([&] {
    out.member("version", kStateVersion);
    write_specs(out, "vgpus", intent.vgpus);
  });
  return std::move(out).text() + "\n";
}

std::string to_json(const Journal& journal) {
  json::Writer out(json::Layout::Indented);
  out.object([&] {
    out.member("version", kStateVersion);
    out.member("command", journal.command);
    out.array("gpus", journal.gpus, [&](const model::PciAddress& gpu) { out.value(gpu.sysfs()); });
    write_specs(out, "before", journal.before);
    write_specs(out, "after", journal.after);
    out.array("steps", journal.steps);
  });
  return std::move(out).text() + "\n";
}

std::string to_json(const KnownTypes& types) {
  json::Writer out(json::Layout::Indented);
  out.object([&] {
    out.member("version", kStateVersion);
    out.object("models", [&] {
      for (const auto& [model, names] : types) out.object(model, names);
    });
  });
  return std::move(out).text() + "\n";
}

Result<Intent> parse_intent(std::string_view text) {
  GANTRY_TRY(const auto document, parse_versioned(text));
  Intent intent;
  GANTRY_TRY(intent.vgpus, parse_specs(document["vgpus"]));
  return intent;
}

Result<Journal> parse_journal(std::string_view text) {
  GANTRY_TRY(const auto document, parse_versioned(text));
  Journal journal{.command = document["command"].string_or_empty().substr(0, kMaxText)};
  if (document["gpus"].size() > kMaxGpus) return corrupt("it has too many GPUs");
  for (const auto value : document["gpus"]) {
    GANTRY_TRY(const auto address, address_in(value));
    journal.gpus.push_back(address);
  }
  GANTRY_TRY(journal.before, parse_specs(document["before"]));
  if (document["after"].is(json::Kind::Array)) {  // one without it is completed
    GANTRY_TRY(journal.after, parse_specs(document["after"]));
  }
  journal.steps = document["steps"].strings();
  if (journal.steps.size() > 2 * kMaxStoredVgpus) return corrupt("it has too many steps");
  return journal;
}

Result<KnownTypes> parse_known_types(std::string_view text) {
  GANTRY_TRY(const auto document, parse_versioned(text));
  KnownTypes types;
  for (const auto model : document["models"]) {
    if (types.size() == kMaxTypes) return corrupt("it has too many models");
    auto& names = types[model.key()];
    for (const auto name : model) {
      if (names.size() == kMaxTypes) return corrupt("it has too many types");
      if (!parse_u64(name.key()) || name.string_or_empty().empty())
        return corrupt("a type has no number or no name");
      names[name.key()] = name.string_or_empty().substr(0, kMaxText);
    }
  }
  return types;
}

}  // namespace gantry::vgpu
