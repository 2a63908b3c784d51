// SPDX-License-Identifier: Apache-2.0
#include "gpu/ownership/ownership_state.hpp"

#include "base/core/hash.hpp"
#include "base/core/text.hpp"
#include "base/json/document.hpp"
#include "base/json/writer.hpp"
#include "gpu/model/enum_names.hpp"
#include "gpu/ownership/state_json_internal.hpp"

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

Result<model::PciAddress> address_in(json::Value object) {
  GANTRY_TRY(const auto text, name_in(object, "gpu"));
  const auto address = model::PciAddress::parse(text);
  if (!address) return corrupt_ledger(fmt::format("`{}` is not a PCI address", text));
  return *address;
}

Result<GpuOwnership> entry_from(json::Value object) {
  GpuOwnership entry;
  GANTRY_TRY(entry.gpu, address_in(object));
  GANTRY_TRY(entry.uuid.text, name_in(object, "uuid"));
  GANTRY_TRY(entry.owner, owner_in(object, "owner"));
  GANTRY_TRY(entry.use, use_in(object));
  return entry;
}

Result<Claim> unplaced_claim_from(json::Value object) {
  Claim claim;
  GANTRY_TRY(claim.id, name_in(object, "id"));
  GANTRY_TRY(claim.owner, owner_in(object, "owner"));
  GANTRY_TRY(claim.part, name_in(object, "part"));
  GANTRY_TRY(claim.what, name_in(object, "what"));
  return claim;
}

Result<Claim> claim_from(json::Value object) {
  GANTRY_TRY(auto claim, unplaced_claim_from(object));
  GANTRY_TRY(claim.gpu, address_in(object));
  return claim;
}

Result<OwnerIntent> intent_from(json::Value object) {
  OwnerIntent intent;
  GANTRY_TRY(intent.gpu, address_in(object));
  GANTRY_TRY(intent.to, owner_in(object, "to"));
  GANTRY_TRY(intent.use, use_in(object));
  GANTRY_TRY(intent.what, name_in(object, "what"));
  const auto pid = object["pid"].u64();
  const auto since = object["since"].i64();
  if (!pid || *pid > UINT32_MAX || !since)
    return corrupt_ledger("an intent has no valid pid or time");
  intent.pid = static_cast<std::uint32_t>(*pid);
  intent.since_unix_seconds = *since;
  intent.resumes = object["resumes"].boolean().value_or(false);
  if (const auto kept = object["kept"]) {
    if (!kept.is(json::Kind::Array) || kept.size() > kMaxKeptParts)
      return corrupt_ledger("the kept parts of an intent are too many");
    intent.kept = kept.strings();
  }
  return intent;
}

Result<UnplacedGpu> unplaced_from(json::Value object) {
  UnplacedGpu gpu;
  GANTRY_TRY(gpu.uuid.text, name_in(object, "uuid"));
  GANTRY_TRY(gpu.owner, owner_in(object, "owner"));
  GANTRY_TRY(gpu.use, use_in(object));
  GANTRY_CHECK(read_list(object["claims"], kMaxClaims, unplaced_claim_from, gpu.claims));
  return gpu;
}

Result<OwnershipState> parse_current_state(json::Value document) {
  OwnershipState state;
  GANTRY_CHECK(read_list(document["owners"], kMaxOwnedGpus, entry_from, state.gpus));
  GANTRY_CHECK(read_list(document["claims"], kMaxClaims, claim_from, state.claims));
  GANTRY_CHECK(read_list(document["intents"], kMaxOwnedGpus, intent_from, state.intents));
  GANTRY_CHECK(read_list(document["unplaced"], kMaxOwnedGpus, unplaced_from, state.unplaced));
  return state;
}

void write_owner(json::Writer& out, Owner owner, model::AllocationMode use) {
  out.member("owner", to_string(owner));
  out.member("use", model::to_string(use));
}

void write_claim(json::Writer& out, const Claim& claim) {
  out.member("id", claim.id);
  out.member("owner", to_string(claim.owner));
  out.member("part", claim.part);
  out.member("what", claim.what);
}

void write_unplaced(json::Writer& out, const UnplacedGpu& gpu) {
  out.object([&] {
    out.member("uuid", gpu.uuid.text);
    write_owner(out, gpu.owner, gpu.use);
    out.array("claims", gpu.claims,
              [&](const Claim& claim) { out.object([&] { write_claim(out, claim); }); });
  });
}

struct ParsedState {
  OwnershipState state;
  bool former = false;  // of an earlier version
};

Result<ParsedState> parse_any_version(std::string_view text) {
  GANTRY_TRY(const auto document, json::Document::parse(std::string(text)).in("ledger"));
  const auto sequence = document["sequence"].u64();
  if (!sequence) return corrupt_ledger("sequence is not a number");
  const auto version = document["version"];
  if (version && !version.u64()) return corrupt_ledger("version is not a number");
  if (version && *version.u64() > kStateVersion) {
    return Error(Errc::Unsupported,
                 fmt::format("ledger: version {} was written by a newer version of Gantry; this "
                             "one reads up to version {}",
                             *version.u64(), kStateVersion));
  }
  GANTRY_TRY(auto state,
             version ? parse_current_state(document.root()) : parse_former_state(document.root()));
  state.sequence = *sequence;
  return ParsedState{.state = std::move(state), .former = !version};
}

struct Line {
  Result<ParsedState> parsed;  // Unsupported: of a later version
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
  auto parsed = parse_any_version(body);
  if (!parsed.ok() && parsed.error().code() != Errc::Unsupported) return std::nullopt;
  return Line{std::move(parsed), kHeader + *length};
}

template <class List>
auto* find_gpu(List& list, const model::PciAddress& gpu) {
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const auto& entry) { return entry.gpu == gpu; });
  return found == list.end() ? nullptr : &*found;
}

template <class List>
auto* find_uuid(List& list, const model::GpuUuid& uuid) {
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const auto& entry) { return entry.uuid == uuid; });
  return found == list.end() || uuid.text.empty() ? nullptr : &*found;
}

// Takes everything about the GPU at this address out of the state.
UnplacedGpu take_out(OwnershipState& state, const model::PciAddress& gpu) {
  UnplacedGpu out;
  if (const auto* entry = find_gpu(state.gpus, gpu))
    out = {.uuid = entry->uuid, .owner = entry->owner, .use = entry->use, .claims = {}};
  for (auto& claim : state.claims) {
    if (claim.gpu != gpu) continue;
    out.claims.push_back(claim);
    out.claims.back().gpu = {};
  }
  std::erase_if(state.gpus, [&](const GpuOwnership& entry) { return entry.gpu == gpu; });
  std::erase_if(state.claims, [&](const Claim& claim) { return claim.gpu == gpu; });
  // A card that was plugged in elsewhere is as its driver found it there.
  std::erase_if(state.intents, [&](const OwnerIntent& intent) { return intent.gpu == gpu; });
  return out;
}

void put_in(OwnershipState& state, const model::PciAddress& gpu, UnplacedGpu moved) {
  state.gpus.push_back({.gpu = gpu, .uuid = moved.uuid, .owner = moved.owner, .use = moved.use});
  std::sort(state.gpus.begin(), state.gpus.end(),
            [](const GpuOwnership& a, const GpuOwnership& b) { return a.gpu < b.gpu; });
  for (auto& claim : moved.claims) {
    claim.gpu = gpu;
    state.claims.push_back(std::move(claim));
  }
}

// A GPU of the plugin can be forgotten: the agent adopts it again when it offers it.
bool matters(const UnplacedGpu& gpu) {
  return gpu.owner != Owner::Plugin || !gpu.claims.empty();
}

}  // namespace

Error corrupt_ledger(std::string_view what) {
  return {Errc::Corrupt, fmt::format("ledger: {}", what)};
}

Result<std::string> name_in(json::Value object, std::string_view key) {
  auto text = object[key].string();
  if (!text || text->size() > kMaxNameLength)
    return corrupt_ledger(fmt::format("{} is not a valid name", key));
  return *std::move(text);
}

Result<Owner> owner_in(json::Value object, std::string_view key) {
  GANTRY_TRY(const auto word, name_in(object, key));
  const auto* found = std::find(kOwnerNames.begin(), kOwnerNames.end(), word);
  if (found == kOwnerNames.end())
    return corrupt_ledger(fmt::format("the owner `{}` is unknown", word));
  return static_cast<Owner>(found - kOwnerNames.begin());
}

Result<model::AllocationMode> use_in(json::Value object) {
  GANTRY_TRY(const auto word, name_in(object, "use"));
  const auto use = model::parse_enum<model::AllocationMode>(word);
  if (!use) return corrupt_ledger(fmt::format("the use `{}` is unknown", word));
  return *use;
}

std::string_view to_string(Owner owner) {
  return kOwnerNames[static_cast<std::size_t>(owner)];
}

const GpuOwnership* OwnershipState::find(const model::PciAddress& gpu) const {
  return find_gpu(gpus, gpu);
}

const GpuOwnership* OwnershipState::find(const model::GpuUuid& uuid) const {
  return find_uuid(gpus, uuid);
}

const OwnerIntent* OwnershipState::intent(const model::PciAddress& gpu) const {
  return find_gpu(intents, gpu);
}

const UnplacedGpu* OwnershipState::find_unplaced(const model::GpuUuid& uuid) const {
  return find_uuid(unplaced, uuid);
}

bool is_same_change(const OwnerIntent& a, const OwnerIntent& b) {
  auto same = a;
  same.resumes = b.resumes;
  same.kept = b.kept;
  return same == b;
}

bool identify(OwnershipState& state, const model::PciAddress& gpu, const model::GpuUuid& uuid) {
  if (uuid.text.empty()) return false;
  auto* here = find_gpu(state.gpus, gpu);
  if (here != nullptr && here->uuid == uuid) return false;
  std::optional<UnplacedGpu> moved;
  if (const auto* unplaced = find_uuid(state.unplaced, uuid)) {
    moved = *unplaced;
    std::erase_if(state.unplaced, [&](const UnplacedGpu& entry) { return entry.uuid == uuid; });
  } else if (const auto* elsewhere = find_uuid(state.gpus, uuid)) {
    moved = take_out(state, model::PciAddress(elsewhere->gpu));
  }
  here = find_gpu(state.gpus, gpu);
  if (here != nullptr && here->uuid.text.empty() && !moved) {
    here->uuid = uuid;  // it shows its UUID for the first time
    return true;
  }
  const bool displaces = here != nullptr;
  std::optional<OwnerIntent> begun;
  if (displaces) {
    // Without a UUID it may have been this card: a change that has begun must stay known.
    if (const auto* intent = find_gpu(state.intents, gpu); intent && here->uuid.text.empty())
      begun = *intent;
    auto displaced = take_out(state, gpu);
    if (matters(displaced) && !displaced.uuid.text.empty()) {
      state.unplaced.push_back(std::move(displaced));
    } else if (matters(displaced) && (!moved || !matters(*moved))) {
      moved = std::move(displaced);  // the place was given away, so it stays given away
    }
  }
  if (!moved) return displaces;
  moved->uuid = uuid;
  put_in(state, gpu, *std::move(moved));
  if (begun) state.intents.push_back(*std::move(begun));
  return true;
}

std::string to_json(const OwnershipState& state) {
  json::Writer out;
  out.object([&] {
    out.member("version", kStateVersion);
    out.member("sequence", state.sequence);
    out.array("owners", state.gpus, [&](const GpuOwnership& entry) {
      out.object([&] {
        out.member("gpu", entry.gpu.sysfs());
        out.member("uuid", entry.uuid.text);
        write_owner(out, entry.owner, entry.use);
      });
    });
    out.array("claims", state.claims, [&](const Claim& claim) {
      out.object([&] {
        out.member("gpu", claim.gpu.sysfs());
        write_claim(out, claim);
      });
    });
    out.array("intents", state.intents, [&](const OwnerIntent& intent) {
      out.object([&] {
        out.member("gpu", intent.gpu.sysfs());
        out.member("to", to_string(intent.to));
        out.member("use", model::to_string(intent.use));
        out.member("what", intent.what);
        out.member("pid", intent.pid);
        out.member("since", intent.since_unix_seconds);
        if (!intent.kept.empty()) out.array("kept", intent.kept);
        if (intent.resumes) out.member("resumes", true);
      });
    });
    out.array("unplaced", state.unplaced,
              [&](const UnplacedGpu& gpu) { write_unplaced(out, gpu); });
  });
  return std::move(out).text();
}

Result<OwnershipState> parse_state(std::string_view text) {
  GANTRY_TRY(auto parsed, parse_any_version(text));
  return std::move(parsed.state);
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
    if (!record->parsed.ok()) {
      result.later = true;
      continue;
    }
    if (result.any && record->parsed->state.sequence <= result.state.sequence) continue;
    result.state = std::move(record->parsed->state);
    result.former = record->parsed->former;
    result.any = true;
  }
  return result;
}

}  // namespace gantry::ownership
