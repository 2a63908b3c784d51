// SPDX-License-Identifier: Apache-2.0
// The values of a share as words: in flags, in JSON, and on the daemon's socket. One row for each.
#include "base/core/text.hpp"
#include "sharing/policy/enum_names_internal.hpp"
#include "sharing/policy/share.hpp"
#include "sharing/policy/share_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace gantry::policy {
namespace {

constexpr std::uint32_t kMaxWeight = 10'000;
constexpr std::size_t kMaxUuidLength = 96;
constexpr std::string_view kNone = "none";

bool is_plain(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '-' || letter == '_' ||
         letter == '.';
}

Status check_name(std::string_view name) {
  const bool fine = !name.empty() && name.size() <= kMaxNameLength && name.front() != '.' &&
                    name.front() != '-' && std::all_of(name.begin(), name.end(), is_plain);
  if (fine) return {};
  return Error(
      Errc::Invalid,
      fmt::format("name `{}`: must have at most {} letters, digits, `-`, `_` and `.`, and begin "
                  "with a letter or digit, because it is also the name of a directory and a "
                  "device: team-a",
                  name.substr(0, 2 * kMaxNameLength), kMaxNameLength));
}

bool is_uuid(std::string_view text) {
  return (text.starts_with("GPU-") || text.starts_with("MIG-")) && text.size() <= kMaxUuidLength &&
         std::all_of(text.begin(), text.end(), is_plain);
}

Result<std::vector<model::GpuUuid>> parse_gpus(std::string_view word) {
  std::vector<model::GpuUuid> gpus;
  if (word == "any") return gpus;
  for (const auto piece : split(word, ',')) {
    const model::GpuUuid uuid{std::string(trim(piece))};
    if (!is_uuid(uuid.text))
      return Error(Errc::Invalid,
                   fmt::format("gpus `{}`: not a UUID", uuid.text.substr(0, kMaxUuidLength)))
          .advise(
              "write `any`, or UUIDs from `gantry info`, separated by commas: GPU-8d3c1f0e-...");
    if (std::find(gpus.begin(), gpus.end(), uuid) != gpus.end())
      return Error(Errc::Invalid, fmt::format("gpus: {} is named twice", uuid.text))
          .advise("name each GPU once");
    gpus.push_back(uuid);
  }
  if (gpus.empty() || gpus.size() > kMaxGpusPerShare)
    return Error(Errc::Invalid, fmt::format("gpus: name 1 to {} GPUs, or `any`", kMaxGpusPerShare));
  return gpus;
}

std::string print_gpus(const std::vector<model::GpuUuid>& gpus) {
  if (gpus.empty()) return "any";
  std::string word;
  for (const auto& gpu : gpus) word += (word.empty() ? "" : ",") + gpu.text;
  return word;
}

Result<MemoryLimit> parse_memory(std::string_view word) {
  if (word == kNone) return MemoryLimit{};
  return parse_memory_limit(word);
}

std::string print_memory(const MemoryLimit& memory) {
  return memory == MemoryLimit{} ? std::string(kNone) : to_string(memory);
}

Result<std::uint32_t> parse_compute(std::string_view word) {
  if (word == kNone) return std::uint32_t{0};
  auto digits = trim(word);
  if (digits.ends_with('%')) digits.remove_suffix(1);
  const auto percent = parse_u64(trim(digits));
  if (percent && *percent >= 1 && *percent <= 100) return static_cast<std::uint32_t>(*percent);
  return Error(
      Errc::Invalid,
      fmt::format("compute `{}`: must be a whole percentage from 1 to 100, or `none`: 30%", word));
}

std::string print_compute(std::uint32_t percent) {
  return percent == 0 ? std::string(kNone) : fmt::format("{}%", percent);
}

Result<std::uint32_t> parse_weight(std::string_view word) {
  const auto weight = parse_u64(trim(word));
  if (weight && *weight >= 1 && *weight <= kMaxWeight) return static_cast<std::uint32_t>(*weight);
  return Error(
      Errc::Invalid,
      fmt::format("weight `{}`: must be a whole number from 1 to {}; the default is 100, and 200 "
                  "gives twice as much",
                  word, kMaxWeight));
}

std::string print_weight(std::uint32_t weight) {
  return fmt::to_string(weight);
}

template <class E>
std::string print_enum(E value) {
  return std::string(enum_name(value));
}

struct Field {
  std::string_view key;           // in a share on the daemon's socket and in its records
  std::string_view change_key;    // in the changes of a share on the daemon's socket
  std::string_view document_key;  // in what commands print
  std::string ShareText::*flag;
  Status (*parse)(std::string_view word, ShareChanges& into);
  std::string (*print)(const ShareChanges& from);  // "" if it is not given
};

template <auto Member, auto Parse>
Status parse_into(std::string_view word, ShareChanges& into) {
  GANTRY_TRY(into.*Member, Parse(word));
  return {};
}

template <auto Member, auto Print>
std::string print_from(const ShareChanges& from) {
  const auto& value = from.*Member;
  return value ? Print(*value) : std::string();
}

template <auto Member, auto Parse, auto Print>
constexpr Field field(std::string_view key, std::string ShareText::*flag) {
  return {key, key, key, flag, parse_into<Member, Parse>, print_from<Member, Print>};
}

template <class E, std::optional<E> ShareChanges::*Member>
constexpr Field choice(std::string_view key, std::string ShareText::*flag) {
  return field<Member, parse_enum<E>, print_enum<E>>(key, flag);
}

// Its socket's and records' keys were not spelt alike, and programs of the last version read them.
constexpr Field spelt(Field one, std::string_view change_key, std::string_view document_key) {
  one.change_key = change_key;
  one.document_key = document_key;
  return one;
}

// In the order of the JSON.
constexpr std::array kFields{
    field<&ShareChanges::gpus, parse_gpus, print_gpus>("gpus", &ShareText::gpus),
    field<&ShareChanges::memory, parse_memory, print_memory>("memory", &ShareText::memory),
    field<&ShareChanges::percent, parse_compute, print_compute>("compute", &ShareText::compute),
    field<&ShareChanges::weight, parse_weight, print_weight>("weight", &ShareText::weight),
    choice<Excess, &ShareChanges::excess>("excess", &ShareText::excess),
    choice<Priority, &ShareChanges::priority>("priority", &ShareText::priority),
    spelt(
        choice<ViolationPolicy, &ShareChanges::violation>("on-violation", &ShareText::on_violation),
        "on_violation", "onViolation"),
    choice<UnattachedPolicy, &ShareChanges::unattached>("unattached", &ShareText::unattached),
    spelt(choice<ContextMemory, &ShareChanges::context_memory>("context-memory",
                                                               &ShareText::context_memory),
          "context_memory", "contextMemory"),
    choice<Backend, &ShareChanges::backend>("backend", &ShareText::backend),
};

// By any of its spellings, so that the next version may write another one.
const Field* find_field(std::string_view name) {
  const auto* found = std::find_if(kFields.begin(), kFields.end(), [&](const Field& one) {
    return one.key == name || one.change_key == name || one.document_key == name;
  });
  return found == kFields.end() ? nullptr : found;
}

void write_fields(json::Writer& out, std::string_view Field::*key, const ShareChanges& values) {
  for (const auto& one : kFields) {
    if (const auto word = one.print(values); !word.empty()) out.member(one.*key, word);
  }
}

Error corrupt_share(std::string_view what) {
  return {Errc::Corrupt, fmt::format("share: {}", what)};
}

Error unknown_key(std::string_view key) {
  std::string known = " name";
  for (const auto& one : kFields) known += fmt::format(" {}", one.key);
  return corrupt_share(fmt::format("there is no `{}`; the known keys are:{}", key, known));
}

// Accepts strings, and whole numbers if they are written without quotes: "weight": 200.
Result<std::string> word_in(json::Value value) {
  if (auto text = value.string()) return *std::move(text);
  if (const auto number = value.u64()) return fmt::to_string(*number);
  return corrupt_share(fmt::format("`{}` is {}, not a string: \"{}\": \"...\"", value.key(),
                                   json::to_string(value.kind()), value.key()));
}

}  // namespace

Result<Priority> parse_priority(std::string_view word) {
  return parse_enum<Priority>(word);
}

Result<ShareChanges> parse_changes(const ShareText& text) {
  ShareChanges changes;
  for (const auto& one : kFields) {
    const auto& word = text.*one.flag;
    if (!word.empty()) GANTRY_CHECK(one.parse(word, changes));
  }
  return changes;
}

Result<Share> parse_share(const ShareText& text) {
  GANTRY_CHECK(check_name(text.name));
  GANTRY_TRY(const auto values, parse_changes(text));
  Share share;
  share.name = text.name;
  return apply_changes(std::move(share), values);
}

void write(json::Writer& out, const Share& share) {
  out.object([&] {
    out.member("name", share.name);
    write_fields(out, &Field::key, to_changes(share));
  });
}

void write(json::Writer& out, const ShareChanges& changes) {
  out.object([&] { write_fields(out, &Field::change_key, changes); });
}

std::string to_json(const Share& share) {
  json::Writer out;
  write(out, share);
  return std::move(out).text();
}

void write_document_members(json::Writer& out, const Share& share) {
  out.member("name", share.name);
  write_fields(out, &Field::document_key, to_changes(share));
}

std::string to_document(const Share& share) {
  json::Writer out;
  out.object([&] {
    out.member("version", kDocumentVersion);
    write_document_members(out, share);
  });
  return std::move(out).text();
}

Result<Share> share_from_json(json::Value value) {
  if (!value.is(json::Kind::Object)) return corrupt_share("is not an object");
  if (value.raw().size() > kMaxJsonLength) return corrupt_share("is too long for a share");
  Share share;
  ShareChanges values;
  for (const auto member : value) {
    const auto key = member.key();
    if (key == "version") continue;
    const auto* known = find_field(key);
    if (known == nullptr && key != "name") return unknown_key(key);
    GANTRY_TRY(auto word, word_in(member));
    if (known == nullptr) {
      share.name = std::move(word);
    } else if (!word.empty()) {
      GANTRY_CHECK(known->parse(word, values));
    }
  }
  GANTRY_CHECK(check_name(share.name));
  return apply_changes(std::move(share), values);
}

Result<Share> share_from_json(std::string_view text) {
  if (text.size() > kMaxJsonLength) return corrupt_share("is too long for a share");
  GANTRY_TRY(const auto document, json::Document::parse(std::string(text)).in("share"));
  return share_from_json(document.root());
}

Result<ShareChanges> changes_from_json(json::Value object) {
  ShareChanges changes;
  for (const auto member : object) {
    const auto* known = find_field(member.key());
    const auto word = member.string();
    if (known == nullptr || !word || word->size() > kMaxJsonLength)
      return Error(Errc::Invalid, "a change needs the name of a limit and its text");
    if (!word->empty()) GANTRY_CHECK(known->parse(*word, changes));
  }
  return changes;
}

}  // namespace gantry::policy
