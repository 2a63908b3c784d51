// SPDX-License-Identifier: Apache-2.0
#include "container/cdi/read.hpp"

#include "base/json/document.hpp"
#include "container/cdi/field_reader_internal.hpp"
#include "container/cdi/validate.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::cdi {
namespace {

// Real specifications of eight GPUs with MIG have about 5,000 values.
constexpr yaml::Limits kLimits{
    .bytes = kMaxSpecBytes, .values = 200'000, .depth = 12, .aliases = yaml::AliasPolicy::Copy};

class Decoder {
 public:
  void decode(const yaml::Value& value, Spec& spec) {
    FieldReader fields(value, "a specification", error);
    fields.text("cdiVersion", spec.version)
        .text("kind", spec.kind)
        .text_map("annotations", spec.annotations)
        .list("devices", [&](const auto& item) { decode(item, spec.devices.emplace_back()); })
        .map("containerEdits", [&](const auto& item) { decode(item, spec.edits); })
        .finish();
  }

  std::optional<Error> error;

 private:
  void decode(const yaml::Value& value, Device& device) {
    FieldReader fields(value, "a device", error);
    fields.text("name", device.name)
        .text_map("annotations", device.annotations)
        .map("containerEdits", [&](const auto& item) { decode(item, device.edits); })
        .finish();
  }

  void decode(const yaml::Value& value, Edits& edits) {
    FieldReader fields(value, "containerEdits", error);
    fields.texts("env", edits.env)
        .list("deviceNodes",
              [&](const auto& item) { decode(item, edits.device_nodes.emplace_back()); })
        .list("netDevices",
              [&](const auto& item) { decode(item, edits.net_devices.emplace_back()); })
        .list("hooks", [&](const auto& item) { decode(item, edits.hooks.emplace_back()); })
        .list("mounts", [&](const auto& item) { decode(item, edits.mounts.emplace_back()); })
        .map("intelRdt", [&](const auto& item) { decode(item, edits.intel_rdt.emplace()); })
        .numbers("additionalGids", edits.additional_gids)
        .finish();
  }

  void decode(const yaml::Value& value, DeviceNode& node) {
    FieldReader fields(value, "a device node", error);
    fields.text("path", node.path)
        .text("hostPath", node.host_path)
        .text("type", node.type)
        .number("major", node.major)
        .number("minor", node.minor)
        .number("fileMode", node.file_mode)
        .text("permissions", node.permissions)
        .number("uid", node.uid)
        .number("gid", node.gid)
        .finish();
  }

  void decode(const yaml::Value& value, NetDevice& device) {
    FieldReader fields(value, "a net device", error);
    fields.text("hostInterfaceName", device.host_interface_name).text("name", device.name).finish();
  }

  void decode(const yaml::Value& value, Hook& hook) {
    FieldReader fields(value, "a hook", error);
    fields.text("hookName", hook.hook_name)
        .text("path", hook.path)
        .texts("args", hook.args)
        .texts("env", hook.env)
        .number("timeout", hook.timeout)
        .finish();
  }

  void decode(const yaml::Value& value, Mount& mount) {
    FieldReader fields(value, "a mount", error);
    fields.text("hostPath", mount.host_path)
        .text("containerPath", mount.container_path)
        .texts("options", mount.options)
        .text("type", mount.type)
        .finish();
  }

  void decode(const yaml::Value& value, IntelRdt& rdt) {
    FieldReader fields(value, "intelRdt", error);
    fields.text("closID", rdt.clos_id)
        .text("l3CacheSchema", rdt.l3_cache_schema)
        .text("memBwSchema", rdt.mem_bw_schema)
        .texts("schemata", rdt.schemata)
        .flag("enableMonitoring", rdt.enable_monitoring)
        .flag("enableCMT", rdt.enable_cmt)
        .flag("enableMBM", rdt.enable_mbm)
        .finish();
  }
};

// Parses JSON into the same tree. Counts lines while values arrive, in the order of the text.
class JsonConverter {
 public:
  JsonConverter(const json::Document& document, std::string_view file)
      : text_(document.text()), file_(std::make_shared<const std::string>(file)) {}

  yaml::Value convert(const json::Value& from, std::size_t depth = 0) {
    yaml::Value value;
    value.file = file_;
    value.line = line_of(from.node().begin);
    switch (from.kind()) {
      case json::Kind::Absent:
      case json::Kind::Null: break;
      case json::Kind::String:
        value.quoted = true;
        value.text = from.string().value_or("");
        value.kind = yaml::Value::Kind::Scalar;
        break;
      case json::Kind::Bool:
      case json::Kind::Number:
        value.text = from.raw();
        value.kind = yaml::Value::Kind::Scalar;
        break;
      case json::Kind::Array: value.kind = yaml::Value::Kind::List; break;
      case json::Kind::Object: value.kind = yaml::Value::Kind::Map; break;
    }
    too_deep = too_deep || depth > kLimits.depth;
    if (value.kind != yaml::Value::Kind::List && value.kind != yaml::Value::Kind::Map) return value;
    for (const auto& child : from) {
      if (too_deep) break;
      auto item = convert(child, depth + 1);
      if (value.kind == yaml::Value::Kind::List) {
        value.items.push_back(std::move(item));
      } else {
        value.entries.push_back({child.key(), std::move(item)});
      }
    }
    return value;
  }

  bool too_deep = false;

 private:
  int line_of(std::size_t at) {
    for (; at_ < at; ++at_) line_ += text_[at_] == '\n' ? 1 : 0;
    return line_;
  }

  const std::string& text_;
  std::shared_ptr<const std::string> file_;
  std::size_t at_ = 0;
  int line_ = 1;
};

Result<yaml::Value> parse_json_tree(std::string_view text, std::string_view file) {
  if (text.size() > kMaxSpecBytes) {
    return Error(Errc::Corrupt, fmt::format("{}: larger than {} KiB", file, kMaxSpecBytes >> 10U));
  }
  GANTRY_TRY(const auto document, json::Document::parse(std::string(text)).in(file));
  JsonConverter from(document, file);
  auto root = from.convert(document.root());
  if (from.too_deep) {
    return Error(Errc::Corrupt,
                 fmt::format("{}: nested deeper than {} levels", file, kLimits.depth));
  }
  return root;
}

// A text that starts with a brace is JSON, or rarely YAML in flow style, which yaml-cpp reads.
Result<yaml::Value> parse_tree(std::string_view text, std::string_view file) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') {
    auto root = parse_json_tree(text, file);
    if (root.ok() || file.ends_with(".json")) return root;
  }
  return yaml::parse(text, file, kLimits);
}

}  // namespace

Result<Spec> parse_spec(std::string_view text, std::string_view file) {
  GANTRY_TRY(const auto root, parse_tree(text, file));
  Decoder decoder;
  Spec spec;
  decoder.decode(root, spec);
  if (decoder.error) return *decoder.error;
  return spec;
}

Result<Spec> load_spec(std::string_view text, std::string_view file) {
  GANTRY_TRY(auto spec, parse_spec(text, file));
  const auto problems = validate(spec);
  if (!problems.empty()) {
    return Error(Errc::Corrupt, fmt::format("{}: {}", file, problems.front()));
  }
  return spec;
}

}  // namespace gantry::cdi
