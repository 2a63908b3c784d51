// SPDX-License-Identifier: Apache-2.0
#include "gpu/ownership/ownership_state.hpp"

#include "base/core/hash.hpp"
#include "base/core/text.hpp"
#include "base/json/document.hpp"
#include "base/json/writer.hpp"
#include "gpu/model/enum_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace gantry::ownership {
namespace {

constexpr std::array<std::string_view, 3> kOwnerNames{"plugin", "dra", "vm"};
constexpr std::size_t kLengthDigits = 8;
constexpr std::size_t kHashDigits = 16;
constexpr std::size_t kHeader = kLengthDigits + 1 + kHashDigits + 1;

std::string checksum(std::string_view text) {
  Hash hash;
  hash.add(text);
  return hash.text();
}

Error corrupt(std::string_view what) {
  return {Errc::Corrupt, fmt::format("ledger: {}", what)};
}

Result<std::string> name_in(json::Value object, std::string_view key) {
  auto text = object[key].string();
  if (!text || text->size() > kMaxNameLength)
    return corrupt(fmt::format("{} is not a valid name", key));
  return *std::move(text);
}

Result<Owner> owner_in(json::Value object) {
  GANTRY_TRY(const auto word, name_in(object, "owner"));
  const auto* found = std::find(kOwnerNames.begin(), kOwnerNames.end(), word);
  if (found == kOwnerNames.end()) return corrupt(fmt::format("the owner `{}` is unknown", word));
  return static_cast<Owner>(found - kOwnerNames.begin());
}

Result<GpuOwnership> entry_from(json::Value object) {
  GpuOwnership entry;
  GANTRY_TRY(entry.gpu.text, name_in(object, "gpu"));
  GANTRY_TRY(entry.owner, owner_in(object));
  GANTRY_TRY(const auto word, name_in(object, "use"));
  const auto use = model::parse_enum<model::AllocationMode>(word);
  if (!use) return corrupt(fmt::format("the use `{}` is unknown", word));
  entry.use = *use;
  return entry;
}

Result<Claim> claim_from(json::Value object) {
  Claim claim;
  GANTRY_TRY(claim.id, name_in(object, "id"));
  GANTRY_TRY(claim.owner, owner_in(object));
  GANTRY_TRY(claim.gpu.text, name_in(object, "gpu"));
  GANTRY_TRY(claim.mig.text, name_in(object, "mig"));
  GANTRY_TRY(claim.what, name_in(object, "what"));
  return claim;
}

template <class T, class From>
Status read_list(json::Value list, std::size_t most, From from, std::vector<T>& into) {
  if (!list.is(json::Kind::Array) || list.size() > most)
    return corrupt("a list is missing or too long");
  for (const auto value : list) {
    GANTRY_TRY(auto item, from(value));
    into.push_back(std::move(item));
  }
  return {};
}

struct Line {
  OwnershipState state;
  std::size_t size = 0;
};

// The record that begins here; `line` goes to the next line feed or the end.
std::optional<Line> record_at(std::string_view line) {
  if (line.size() < kHeader || line[kLengthDigits] != ' ' || line[kHeader - 1] != ' ') {
    return std::nullopt;
  }
  const auto length = parse_u64(line.substr(0, kLengthDigits));
  if (!length || *length > line.size() - kHeader) return std::nullopt;
  const auto body = line.substr(kHeader, *length);
  if (checksum(body) != line.substr(kLengthDigits + 1, kHashDigits)) return std::nullopt;
  auto state = parse_state(body);
  if (!state.ok()) return std::nullopt;
  return Line{*std::move(state), kHeader + *length};
}

}  // namespace

std::string_view to_string(Owner owner) {
  return kOwnerNames[static_cast<std::size_t>(owner)];
}

const GpuOwnership* OwnershipState::find(const model::GpuUuid& gpu) const {
  const auto found = std::find_if(gpus.begin(), gpus.end(),
                                  [&](const GpuOwnership& entry) { return entry.gpu == gpu; });
  return found == gpus.end() ? nullptr : &*found;
}

std::string to_json(const OwnershipState& state) {
  json::Writer out;
  out.object([&] {
    out.member("sequence", state.sequence);
    out.array("gpus", state.gpus, [&](const GpuOwnership& entry) {
      out.object([&] {
        out.member("gpu", entry.gpu.text);
        out.member("owner", to_string(entry.owner));
        out.member("use", model::to_string(entry.use));
      });
    });
    out.array("claims", state.claims, [&](const Claim& claim) {
      out.object([&] {
        out.member("id", claim.id);
        out.member("owner", to_string(claim.owner));
        out.member("gpu", claim.gpu.text);
        out.member("mig", claim.mig.text);
        out.member("what", claim.what);
      });
    });
  });
  return std::move(out).text();
}

Result<OwnershipState> parse_state(std::string_view text) {
  GANTRY_TRY(const auto document, json::Document::parse(std::string(text)).in("ledger"));
  OwnershipState state;
  const auto sequence = document["sequence"].u64();
  if (!sequence) return corrupt("sequence is not a number");
  state.sequence = *sequence;
  GANTRY_CHECK(read_list(document["gpus"], kMaxOwnedGpus, entry_from, state.gpus));
  GANTRY_CHECK(read_list(document["claims"], kMaxClaims, claim_from, state.claims));
  return state;
}

std::string to_record(const OwnershipState& state) {
  const auto body = to_json(state);
  return fmt::format("{:08} {} {}\n", body.size(), checksum(body), body);
}

ReplayResult replay_records(std::string_view file) {
  ReplayResult result;
  std::size_t at = 0;
  while (at < file.size()) {
    const auto line = file.substr(at, file.find('\n', at) - at);
    auto record = record_at(line);
    if (!record) {
      result.damaged = true;
      at += line.size() + 1;
      continue;
    }
    // The length gives the start of the next record, even if the line feed is damaged.
    at += record->size;
    if (at >= file.size() || file[at] != '\n') result.damaged = true;
    ++at;
    if (result.any && record->state.sequence <= result.state.sequence) continue;
    result.state = std::move(record->state);
    result.any = true;
  }
  return result;
}

}  // namespace gantry::ownership
