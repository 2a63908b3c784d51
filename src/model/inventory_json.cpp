// SPDX-License-Identifier: Apache-2.0
#include "model/inventory_json.hpp"

#include "base/text.hpp"
#include "model/inventory_fields_internal.hpp"
#include "model/words.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <limits>
#include <optional>

namespace gantry::model {
namespace {

constexpr int kDepthLimit = 16;  // ours has 6

// --- writing -------------------------------------------------------------------------------------

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
// 0000:00:00.0 is the host bridge wherever it exists; no GPU is there, so it stands for "unknown".
Ordered form(const PciAddress& value) {
  return value == PciAddress{} ? Ordered() : Ordered(value.sysfs());
}
Ordered form(const ComputeCapability& value) {
  return fmt::format("{}.{}", value.major, value.minor);
}

template <class T>
requires std::is_enum_v<T> Ordered form(const T& value) {
  return to_word(value);
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
  describe(w, v);
}
Ordered form(const T& value) {
  Ordered object = Ordered::object();
  Writer writer{object};
  describe(writer, value);
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

// --- reading -------------------------------------------------------------------------------------

using Json = nlohmann::json;  // a tree map: many keys in a hostile object stay cheap

// Where we are in the document; spelled out only when something is wrong there.
struct Place {
  const Place* up = nullptr;
  std::string_view key;
  std::size_t index = 0;

  std::string path() const {
    if (up == nullptr) return "";
    auto above = up->path();
    if (key.empty()) return fmt::format("{}[{}]", above, index);
    return above.empty() ? std::string(key) : fmt::format("{}.{}", above, key);
  }
};

// The first thing that is wrong; after it, nothing is read any more.
struct Trouble {
  std::optional<Error> first;
  void at(const Place& place, std::string_view what) {
    if (!first) first = Error(Errc::Corrupt, fmt::format("{}: {}", place.path(), what));
  }
};

struct Reader {
  const Json& in;
  const Place& place;
  Trouble& trouble;
  template <class T>
  void operator()(const char* key, T&& value);
};

struct At {
  const Json& in;
  const Place& place;
  Trouble& trouble;
  void wrong(std::string_view what) const { trouble.at(place, what); }
};

void take(const At& at, bool& value) {
  if (!at.in.is_boolean()) return at.wrong("expected true or false");
  value = at.in.get<bool>();
}

template <class T>
requires std::integral<T>
void take(const At& at, T& value) {
  const auto wrong = [&] {
    at.wrong(fmt::format("expected a whole number from {} to {}", std::numeric_limits<T>::min(),
                         std::numeric_limits<T>::max()));
  };
  if (at.in.is_number_unsigned()) {
    const auto number = at.in.get<std::uint64_t>();
    if (!std::in_range<T>(number)) return wrong();
    value = static_cast<T>(number);
  } else if (at.in.is_number_integer()) {
    const auto number = at.in.get<std::int64_t>();
    if (!std::in_range<T>(number)) return wrong();
    value = static_cast<T>(number);
  } else {
    wrong();
  }
}

void take(const At& at, std::string& value) {
  if (at.in.is_null()) return value.clear();
  if (!at.in.is_string()) return at.wrong("expected a text or null");
  value = at.in.get_ref<const std::string&>();
}

void take(const At& at, GpuUuid& value) {
  take(at, value.text);
}

const std::string* text_of(const At& at) {
  if (at.in.is_string()) return at.in.get_ptr<const std::string*>();
  at.wrong("expected a text");
  return nullptr;
}

void take(const At& at, PciAddress& value) {
  if (at.in.is_null()) {
    value = {};
    return;
  }
  const auto* text = text_of(at);
  if (text == nullptr) return;
  const auto address = PciAddress::parse(*text);
  if (!address) return at.wrong("expected a PCI address such as 0000:3b:00.0");
  value = *address;
}

void take(const At& at, ComputeCapability& value) {
  const auto* text = text_of(at);
  if (text == nullptr) return;
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
void take(const At& at, T& value) {
  const auto* text = text_of(at);
  if (text == nullptr) return;
  const auto known = from_word<T>(*text);
  if (!known)
    return at.wrong(fmt::format("unknown word, expected one of {}", fmt::join(kWords<T>, ", ")));
  value = *known;
}

template <class T>
void take_number(const At& at, T& value, std::string_view prefix, int base, std::string_view form) {
  const auto* text = text_of(at);
  if (text == nullptr) return;
  const bool prefixed = text->starts_with(prefix);
  const auto number =
      prefixed ? parse_u64(std::string_view(*text).substr(prefix.size()), base) : std::nullopt;
  if (!number || !std::in_range<T>(*number)) return at.wrong(fmt::format("expected {}", form));
  value = static_cast<T>(*number);
}

template <class T>
void take(const At& at, Hex<T>& hex) {
  take_number(at, hex.value, "0x", 16, "a number such as 0x10de");
}
template <class T>
void take(const At& at, Octal<T>& octal) {
  take_number(at, octal.value, "", 8, "an octal mode such as 0666");
}
template <class T>
void take(const At& at, Letter<T>& letter) {
  const auto* text = text_of(at);
  if (text == nullptr) return;
  if (text->size() != 1) return at.wrong("expected one letter");
  letter.value = text->front();
}

template <class T>
void take(const At& at, std::optional<T>& value) {
  if (at.in.is_null()) return value.reset();
  take(at, value.emplace());
}

template <class T>
requires requires(Reader& r, T& v) {
  describe(r, v);
}
void take(const At& at, T& value) {
  if (!at.in.is_object()) return at.wrong("expected an object");
  Reader reader{at.in, at.place, at.trouble};
  describe(reader, value);
}

template <class T>
void take(const At& at, std::vector<T>& values) {
  if (!at.in.is_array()) return at.wrong("expected a list");
  values.clear();
  for (std::size_t i = 0; i < at.in.size() && !at.trouble.first; ++i) {
    const Place place{.up = &at.place, .key = {}, .index = i};
    take(At{at.in[i], place, at.trouble}, values.emplace_back());
  }
}

template <class T>
void Reader::operator()(const char* key, T&& value) {
  if (trouble.first) return;
  const Place here{.up = &place, .key = key};
  const auto found = in.find(key);
  if (found == in.end()) return trouble.at(here, "missing");
  take(At{*found, here, trouble}, value);
}

// The parser itself does not recurse, but what comes after it would.
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

Status check_schema(const Json& document) {
  if (!document.is_object()) return Error(Errc::Corrupt, "expected an object");
  const auto schema = document.find("schema");
  if (schema == document.end()) return Error(Errc::Corrupt, "schema: missing");
  if (!schema->is_number_integer()) return Error(Errc::Corrupt, "schema: expected a whole number");
  if (*schema == Inventory::kSchema) return {};
  return Error(Errc::Corrupt, fmt::format("schema: {} is not known here, only {}; probe again with "
                                          "`gantry info --json`",
                                          schema->dump(), Inventory::kSchema));
}

Ordered document_of(const Inventory& inventory) {
  Ordered document = Ordered::object();
  document["schema"] = Inventory::kSchema;
  Writer writer{document};
  describe(writer, inventory);
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

Result<Inventory> inventory_from_json(std::string_view text) {
  if (text.size() > kInventoryJsonLimit) {
    return Error(Errc::Corrupt, fmt::format("{} bytes are no inventory", text.size()))
        .in("inventory");
  }
  if (nests_too_deep(text)) return Error(Errc::Corrupt, "nested too deep").in("inventory");
  const Json document = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) return Error(Errc::Corrupt, "not JSON").in("inventory");
  GANTRY_CHECK(check_schema(document).in("inventory"));

  Inventory inventory;
  Trouble trouble;
  const Place top;
  take(At{document, top, trouble}, inventory);
  if (trouble.first) return std::move(*trouble.first).in("inventory");
  GANTRY_CHECK(check_links(inventory).in("inventory"));
  return inventory;
}

}  // namespace gantry::model
