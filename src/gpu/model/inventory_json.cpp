// SPDX-License-Identifier: Apache-2.0
#include "gpu/model/inventory_json.hpp"

#include "gpu/model/enum_names.hpp"
#include "gpu/model/inventory_fields_internal.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <optional>

namespace gantry::model {
namespace {

using Ordered = nlohmann::ordered_json;

struct Writer {
  Ordered& out;
  template <class T>
  void operator()(const char* key, const T& value);
};

template <class T>
requires std::integral<T> Ordered form(const T& value) {
  return value;
}

Ordered form(const std::string& value) {
  return value.empty() ? Ordered() : Ordered(value);
}
Ordered form(const GpuUuid& value) {
  return form(value.text);
}
// 0000:00:00.0 is always the host bridge and never a GPU, so it stands for "unknown".
Ordered form(const PciAddress& value) {
  return value == PciAddress{} ? Ordered() : Ordered(value.sysfs());
}
Ordered form(const ComputeCapability& value) {
  return fmt::format("{}.{}", value.major, value.minor);
}

template <class T>
requires std::is_enum_v<T> Ordered form(const T& value) {
  return to_string(value);
}

template <class T>
Ordered form(const Hex<T>& hex) {
  return fmt::format("0x{:0{}x}", hex.value, hex.digits);
}
template <class T>
Ordered form(const Octal<T>& octal) {
  return fmt::format("{:04o}", octal.value);
}
template <class T>
Ordered form(const Letter<T>& letter) {
  return std::string(1, letter.value);
}

template <class T>
Ordered form(const std::optional<T>& value) {
  return value ? form(*value) : Ordered();
}

template <class T>
requires requires(Writer& w, const T& v) {
  visit_fields(w, v);
}
Ordered form(const T& value) {
  Ordered object = Ordered::object();
  Writer writer{object};
  visit_fields(writer, value);
  return object;
}

template <class T>
Ordered form(const std::vector<T>& values) {
  Ordered list = Ordered::array();
  for (const auto& value : values) list.push_back(form(value));
  return list;
}

template <class T>
void Writer::operator()(const char* key, const T& value) {
  out.push_back({key, form(value)});
}

Ordered document_of(const Inventory& inventory) {
  Ordered document = Ordered::object();
  document["schema"] = Inventory::kSchema;
  Writer writer{document};
  visit_fields(writer, inventory);
  return document;
}

std::string text_of(const Ordered& document, JsonLayout layout) {
  const int indent = layout == JsonLayout::Pretty ? 2 : -1;
  return document.dump(indent, ' ', false, Ordered::error_handler_t::replace) + "\n";
}

}  // namespace

std::string to_json(const Inventory& inventory, JsonLayout layout) {
  return text_of(document_of(inventory), layout);
}

std::string to_json_part(const Inventory& inventory, const std::vector<std::string>& keys) {
  const Ordered whole = document_of(inventory);
  Ordered part = Ordered::object();
  part["schema"] = whole["schema"];
  for (const auto& key : keys) part[key] = whole.at(key);
  return text_of(part, JsonLayout::Pretty);
}

}  // namespace gantry::model
