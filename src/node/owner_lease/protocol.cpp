// SPDX-License-Identifier: Apache-2.0
#include "node/owner_lease/protocol.hpp"

#include "base/json/document.hpp"
#include "base/json/writer.hpp"
#include "gpu/model/enum_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace gantry::owner_lease {
namespace {

using ownership::Owner;

constexpr std::uint64_t kProtocolVersion = 1;
// Six bytes for each character that JSON escapes must fit into a message.
constexpr std::size_t kMaxReplyText = 1200;
constexpr std::int64_t kMaxWaitMs = std::int64_t{24} * 3600 * 1000;
constexpr std::array<std::string_view, 2> kRequestNames{"lease", "settle"};
constexpr std::array<std::string_view, 4> kReplyNames{"waiting", "granted", "settled", "refused"};
constexpr std::array<std::string_view, 4> kOutcomeNames{"done", "undone", "unknown", "not-begun"};
constexpr std::array<Owner, 3> kOwners{Owner::Plugin, Owner::Dra, Owner::Vm};
constexpr std::size_t kErrorCodes = static_cast<std::size_t>(Errc::TooLarge) + 1;

Error bad_message(std::string_view what) {
  return {Errc::Corrupt, fmt::format("owner request: {}", what)};
}

template <class E, std::size_t N>
std::string_view word_for(const std::array<std::string_view, N>& names, E value) {
  return names[static_cast<std::size_t>(value)];
}

template <class E, std::size_t N>
Result<E> read_name(json::Value object, std::string_view key,
                    const std::array<std::string_view, N>& names) {
  const auto word = object[key].string();
  const auto* found = word ? std::find(names.begin(), names.end(), *word) : names.end();
  if (found == names.end()) return bad_message(fmt::format("`{}` is missing or unknown", key));
  return static_cast<E>(found - names.begin());
}

Result<std::string> read_text(json::Value object, std::string_view key) {
  auto text = object[key].string();
  if (!text || text->size() > kMaxMessage)
    return bad_message(fmt::format("`{}` is not a text", key));
  return *std::move(text);
}

Result<json::Document> read_document(std::string_view text) {
  GANTRY_TRY(auto document, json::Document::parse(std::string(text)).in("owner request"));
  if (document["version"].u64() != kProtocolVersion)
    return bad_message(
        "it is of another version of Gantry; restart the agent: sudo systemctl "
        "restart gantry-agent");
  return document;
}

Result<Owner> read_owner(json::Value object) {
  GANTRY_TRY(const auto word, read_text(object, "to"));
  const auto* found = std::find_if(kOwners.begin(), kOwners.end(), [&](Owner owner) {
    return ownership::to_string(owner) == word;
  });
  if (found == kOwners.end()) return bad_message("the new owner is unknown");
  return *found;
}

// Absent in requests that have none.
Result<std::vector<std::string>> read_yielding(json::Value object) {
  std::vector<std::string> names;
  const auto list = object["yielding"];
  if (!list) return names;
  if (!list.is(json::Kind::Array) || list.size() > kMaxYielding)
    return bad_message("`yielding` is not a short list");
  for (const auto one : list) {
    auto name = one.string();
    if (!name || name->empty() || name->size() > kMaxProgramName)
      return bad_message("`yielding` has a wrong name");
    names.push_back(*std::move(name));
  }
  return names;
}

Result<std::vector<std::string>> read_parts_list(json::Value list) {
  std::vector<std::string> texts;
  if (!list.is(json::Kind::Array) || list.size() > kMaxParts)
    return bad_message("`parts` is not a short list");
  for (const auto one : list) {
    auto text = one.string();
    if (!text || text->empty() || text->size() > ownership::kMaxNameLength)
      return bad_message("`parts` has a wrong name");
    texts.push_back(*std::move(text));
  }
  return texts;
}

// Absent in requests for a whole card.
Result<std::optional<ownership::ChangedParts>> read_parts(json::Value object) {
  const auto given = object["parts"];
  if (!given) return std::optional<ownership::ChangedParts>();
  ownership::ChangedParts parts;
  GANTRY_TRY(parts.kept, read_parts_list(given["kept"]));
  GANTRY_TRY(parts.going, read_parts_list(given["going"]));
  GANTRY_TRY(parts.nodes, read_parts_list(given["nodes"]));
  return std::optional(std::move(parts));
}

Result<ownership::OwnerIntent> read_intent(json::Value object) {
  ownership::OwnerIntent intent;
  GANTRY_TRY(const auto address, read_text(object, "gpu"));
  const auto gpu = model::PciAddress::parse(address);
  if (!gpu) return bad_message("the GPU is not a PCI address");
  intent.gpu = *gpu;
  GANTRY_TRY(intent.to, read_owner(object));
  GANTRY_TRY(const auto use, read_text(object, "use"));
  const auto mode = model::parse_enum<model::AllocationMode>(use);
  if (!mode) return bad_message("the use is unknown");
  intent.use = *mode;
  GANTRY_TRY(intent.what, read_text(object, "what"));
  const auto pid = object["pid"].u64();
  const auto since = object["since"].i64();
  if (!pid || *pid > UINT32_MAX || !since || *since < 0) return bad_message("no pid or time");
  intent.pid = static_cast<std::uint32_t>(*pid);
  intent.since_unix_seconds = *since;
  return intent;
}

}  // namespace

std::string to_json(const OwnerRequest& request) {
  json::Writer out;
  out.object([&] {
    out.member("version", kProtocolVersion);
    out.member("request", word_for(kRequestNames, request.kind));
    out.member("gpu", request.intent.gpu.sysfs());
    out.member("to", ownership::to_string(request.intent.to));
    out.member("use", model::to_string(request.intent.use));
    out.member("what", request.intent.what);
    out.member("pid", request.intent.pid);
    out.member("since", request.intent.since_unix_seconds);
    out.member("wait_ms", static_cast<std::int64_t>(request.wait.count()));
    out.member("outcome", word_for(kOutcomeNames, request.outcome));
    if (!request.yielding.empty()) out.array("yielding", request.yielding);
    if (!request.uuid.text.empty()) out.member("uuid", request.uuid.text);
    if (!request.intent.kept.empty()) out.array("kept", request.intent.kept);
    if (!request.parts) return;
    out.object("parts", [&] {
      out.array("kept", request.parts->kept);
      out.array("going", request.parts->going);
      out.array("nodes", request.parts->nodes);
    });
  });
  return std::move(out).text();
}

std::string to_json(const OwnerReply& reply) {
  json::Writer out;
  out.object([&] {
    out.member("version", kProtocolVersion);
    out.member("reply", word_for(kReplyNames, reply.kind));
    out.member("code", static_cast<std::uint64_t>(reply.code));
    out.member("text", reply.text.substr(0, kMaxReplyText));
  });
  return std::move(out).text();
}

Result<OwnerRequest> parse_request(std::string_view text) {
  GANTRY_TRY(const auto document, read_document(text));
  const auto object = document.root();
  OwnerRequest request;
  GANTRY_TRY(request.kind, read_name<OwnerRequest::Kind>(object, "request", kRequestNames));
  GANTRY_TRY(request.intent, read_intent(object));
  GANTRY_TRY(request.outcome, read_name<ownership::ActOutcome>(object, "outcome", kOutcomeNames));
  const auto wait = object["wait_ms"].i64();
  if (!wait || *wait < 0 || *wait > kMaxWaitMs) return bad_message("the time to wait is wrong");
  request.wait = std::chrono::milliseconds(*wait);
  GANTRY_TRY(request.yielding, read_yielding(object));
  GANTRY_TRY(request.parts, read_parts(object));
  if (object["kept"]) {
    GANTRY_TRY(request.intent.kept, read_parts_list(object["kept"]));
  }
  if (object["uuid"]) {
    GANTRY_TRY(request.uuid.text, read_text(object, "uuid"));
  }
  return request;
}

Result<OwnerReply> parse_reply(std::string_view text) {
  GANTRY_TRY(const auto document, read_document(text));
  const auto object = document.root();
  OwnerReply reply;
  GANTRY_TRY(reply.kind, read_name<OwnerReply::Kind>(object, "reply", kReplyNames));
  const auto code = object["code"].u64();
  if (!code || *code >= kErrorCodes) return bad_message("the code is unknown");
  reply.code = static_cast<Errc>(*code);
  GANTRY_TRY(reply.text, read_text(object, "text"));
  return reply;
}

}  // namespace gantry::owner_lease
