// SPDX-License-Identifier: Apache-2.0
// Reads the inventory. This happens at the start of every container, so it must be fast.
#include "base/core/text.hpp"
#include "base/json/document.hpp"
#include "gpu/model/enum_names.hpp"
#include "gpu/model/inventory_fields_internal.hpp"
#include "gpu/model/inventory_json.hpp"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <utility>

namespace gantry::model {
namespace {

constexpr int kDepthLimit = 16;

// The current place in the document; converted to text only for an error.
struct JsonPath {
  const JsonPath* up = nullptr;
  std::string_view key;
  std::size_t index = 0;

  std::string path() const {
    if (up == nullptr) return "";
    auto above = up->path();
    if (key.empty()) return fmt::format("{}[{}]", above, index);
    return above.empty() ? std::string(key) : fmt::format("{}.{}", above, key);
  }
};

// Keeps the first error; after it, nothing more is read.
struct FirstError {
  std::optional<Error> first;
  void at(const JsonPath& place, std::string_view what) {
    if (!first) first = Error(Errc::Corrupt, fmt::format("{}: {}", place.path(), what));
  }
};

struct Reader {
  json::Value in;
  const JsonPath& place;
  FirstError& trouble;
  template <class T>
  void operator()(const char* key, T&& value);
};

struct Cursor {
  json::Value in;
  const JsonPath& place;
  FirstError& trouble;
  void wrong(std::string_view what) const { trouble.at(place, what); }
};

void take(const Cursor& at, bool& value) {
  const auto read = at.in.boolean();
  if (!read) return at.wrong("expected true or false");
  value = *read;
}

template <class T>
requires std::integral<T>
void take(const Cursor& at, T& value) {
  const auto wrong = [&] {
    at.wrong(fmt::format("expected a whole number from {} to {}", std::numeric_limits<T>::min(),
                         std::numeric_limits<T>::max()));
  };
  if (const auto number = at.in.u64()) {
    if (!std::in_range<T>(*number)) return wrong();
    value = static_cast<T>(*number);
  } else if (const auto below_zero = at.in.i64()) {
    if (!std::in_range<T>(*below_zero)) return wrong();
    value = static_cast<T>(*below_zero);
  } else {
    wrong();
  }
}

void take(const Cursor& at, std::string& value) {
  if (at.in.is(json::Kind::Null)) return value.clear();
  auto text = at.in.string();
  if (!text) return at.wrong("expected a text or null");
  value = *std::move(text);
}

void take(const Cursor& at, GpuUuid& value) {
  take(at, value.text);
}

std::optional<std::string> read_text(const Cursor& at) {
  auto text = at.in.string();
  if (!text) at.wrong("expected a text");
  return text;
}

void take(const Cursor& at, PciAddress& value) {
  if (at.in.is(json::Kind::Null)) {
    value = {};
    return;
  }
  const auto text = read_text(at);
  if (!text) return;
  const auto address = PciAddress::parse(*text);
  if (!address) return at.wrong("expected a PCI address such as 0000:3b:00.0");
  value = *address;
}

void take(const Cursor& at, ComputeCapability& value) {
  const auto text = read_text(at);
  if (!text) return;
  const auto parts = split(*text, '.');
  const auto major = parts.size() == 2 ? parse_u64(parts[0]) : std::nullopt;
  const auto minor = parts.size() == 2 ? parse_u64(parts[1]) : std::nullopt;
  if (!major || !minor || *major > 999 || *minor > 999) {
    return at.wrong("expected a compute capability such as 9.0");
  }
  value = {.major = static_cast<int>(*major), .minor = static_cast<int>(*minor)};
}

template <class T>
requires std::is_enum_v<T>
void take(const Cursor& at, T& value) {
  const auto text = read_text(at);
  if (!text) return;
  const auto known = parse_enum<T>(*text);
  if (!known)
    return at.wrong(
        fmt::format("unknown value, expected one of {}", fmt::join(kEnumNames<T>, ", ")));
  value = *known;
}

template <class T>
void take_number(const Cursor& at, T& value, std::string_view prefix, int base,
                 std::string_view form) {
  const auto text = read_text(at);
  if (!text) return;
  const bool prefixed = text->starts_with(prefix);
  const auto number =
      prefixed ? parse_u64(std::string_view(*text).substr(prefix.size()), base) : std::nullopt;
  if (!number || !std::in_range<T>(*number)) return at.wrong(fmt::format("expected {}", form));
  value = static_cast<T>(*number);
}

template <class T>
void take(const Cursor& at, Hex<T>& hex) {
  take_number(at, hex.value, "0x", 16, "a number such as 0x10de");
}
template <class T>
void take(const Cursor& at, Octal<T>& octal) {
  take_number(at, octal.value, "", 8, "an octal mode such as 0666");
}
template <class T>
void take(const Cursor& at, Character<T>& letter) {
  const auto text = read_text(at);
  if (!text) return;
  if (text->size() != 1) return at.wrong("expected one letter");
  letter.value = text->front();
}

template <class T>
void take(const Cursor& at, std::optional<T>& value) {
  if (at.in.is(json::Kind::Null)) return value.reset();
  take(at, value.emplace());
}

template <class T>
requires requires(Reader& r, T& v) {
  visit_fields(r, v);
}
void take(const Cursor& at, T& value) {
  if (!at.in.is(json::Kind::Object)) return at.wrong("expected an object");
  Reader reader{at.in, at.place, at.trouble};
  visit_fields(reader, value);
}

template <class T>
void take(const Cursor& at, std::vector<T>& values) {
  if (!at.in.is(json::Kind::Array)) return at.wrong("expected a list");
  values.clear();
  std::size_t index = 0;
  for (const auto item : at.in) {
    if (at.trouble.first) return;
    const JsonPath place{.up = &at.place, .key = {}, .index = index++};
    take(Cursor{item, place, at.trouble}, values.emplace_back());
  }
}

template <class T>
void Reader::operator()(const char* key, T&& value) {
  if (trouble.first) return;
  const JsonPath here{.up = &place, .key = key};
  const auto found = in[key];
  if (!found) return trouble.at(here, "missing");
  take(Cursor{found, here, trouble}, value);
}

// An inventory has 6 levels; the parser allows more.
bool nests_too_deep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDepthLimit) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

Status check_links(const Inventory& inventory) {
  const auto count = inventory.gpus.size();
  bool square = inventory.links.size() == count;
  for (const auto& row : inventory.links) square = square && row.size() == count;
  if (square) return {};
  return Error(Errc::Corrupt,
               fmt::format("links: expected {} rows of {}, one per GPU", count, count));
}

Status check_schema(json::Value document) {
  if (!document.is(json::Kind::Object)) return Error(Errc::Corrupt, "expected an object");
  const auto schema = document["schema"];
  if (!schema) return Error(Errc::Corrupt, "schema: missing");
  if (!schema.i64()) return Error(Errc::Corrupt, "schema: expected a whole number");
  if (schema.i64() == Inventory::kSchema) return {};
  return Error(Errc::Corrupt, fmt::format("schema: {} is not supported, only {} is", schema.raw(),
                                          Inventory::kSchema))
      .advise("probe again with `gantry info --json`");
}

}  // namespace

Result<Inventory> inventory_from_json(std::string_view text) {
  if (text.size() > kInventoryJsonLimit) {
    return Error(Errc::Corrupt, fmt::format("{} bytes are not an inventory", text.size()))
        .in("inventory");
  }
  if (nests_too_deep(text)) return Error(Errc::Corrupt, "nested too deep").in("inventory");
  if (!is_utf8(text)) return Error(Errc::Corrupt, "not JSON: not UTF-8").in("inventory");
  const auto document = json::Document::parse(std::string(text)).in("inventory: not JSON");
  if (!document.ok()) return document.error();
  GANTRY_CHECK(check_schema(document->root()).in("inventory"));

  Inventory inventory;
  FirstError trouble;
  const JsonPath top;
  take(Cursor{document->root(), top, trouble}, inventory);
  if (trouble.first) return std::move(*trouble.first).in("inventory");
  GANTRY_CHECK(check_links(inventory).in("inventory"));
  return inventory;
}

}  // namespace gantry::model
