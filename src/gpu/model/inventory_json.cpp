// SPDX-License-Identifier: Apache-2.0
#include "gpu/model/inventory_json.hpp"

#include "base/json/writer.hpp"
#include "gpu/model/enum_names.hpp"
#include "gpu/model/inventory_fields_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace gantry::model {
namespace {

struct FieldWriter {
  json::Writer& out;

  template <class T>
  void operator()(const char* key, const T& value) {
    out.key(key);
    write(value);
  }

  template <std::integral T>
  void write(const T& value) {
    out.value(value);
  }
  void write(const std::string& value) {
    if (value.empty()) return out.value(nullptr);
    out.value(value);
  }
  void write(const GpuUuid& value) { write(value.text); }
  // 0000:00:00.0 is always the host bridge and never a GPU, so it stands for "unknown".
  void write(const PciAddress& value) {
    if (value == PciAddress{}) return out.value(nullptr);
    out.value(value.sysfs());
  }
  void write(const ComputeCapability& value) {
    out.value(fmt::format("{}.{}", value.major, value.minor));
  }
  template <class T>
  requires std::is_enum_v<T>
  void write(const T& value) { out.value(to_string(value)); }
  template <class T>
  void write(const Hex<T>& hex) {
    out.value(fmt::format("0x{:0{}x}", hex.value, hex.digits));
  }
  template <class T>
  void write(const Octal<T>& octal) {
    out.value(fmt::format("{:04o}", octal.value));
  }
  template <class T>
  void write(const Character<T>& letter) {
    out.value(std::string_view(&letter.value, 1));
  }
  template <class T>
  void write(const std::optional<T>& value) {
    if (!value) return out.value(nullptr);
    write(*value);
  }
  template <class T>
  requires requires(FieldWriter& fields, const T& value) { visit_fields(fields, value); }
  void write(const T& value) {
    out.object([&] { visit_fields(*this, value); });
  }
  template <class T>
  void write(const std::vector<T>& values) {
    out.array(values, [this](const T& value) { write(value); });
  }
};

struct PartWriter {
  FieldWriter fields;
  const std::vector<std::string>& keys;

  template <class T>
  void operator()(const char* key, const T& value) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) fields(key, value);
  }
};

template <class Fields>
std::string document_with(const Inventory& inventory, json::Writer& out, Fields fields) {
  out.object([&] {
    out.member("schema", Inventory::kSchema);
    visit_fields(fields, inventory);
  });
  return out.text() + "\n";
}

}  // namespace

std::string to_json(const Inventory& inventory, JsonLayout layout) {
  json::Writer out(layout == JsonLayout::Pretty ? json::Layout::Indented : json::Layout::Line);
  return document_with(inventory, out, FieldWriter{out});
}

std::string to_json_part(const Inventory& inventory, const std::vector<std::string>& keys) {
  json::Writer out(json::Layout::Indented);
  return document_with(inventory, out, PartWriter{{out}, keys});
}

}  // namespace gantry::model
