// SPDX-License-Identifier: Apache-2.0
// What health remembers across a restart of the agent. Only what readings cannot tell again.
#include "base/json/document.hpp"
#include "gpu/health/health.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace gantry::health {
namespace {

constexpr std::size_t kTextLimit = std::size_t{1} << 20;
constexpr std::size_t kTroubleLimit = 10'000;
constexpr std::uint64_t kSchema = 1;

// The others show again in the first readings.
struct Kept {
  Ailment kind;
  std::string_view word;
};
constexpr std::array kKept{Kept{Ailment::Event, "event"}, Kept{Ailment::Remapping, "remapping"}};

Error wrong(std::string_view what) {
  return {Errc::Corrupt, fmt::format("the saved health of GPUs has {}", what)};
}

}  // namespace

std::string Monitor::saved(std::string_view boot_id) const {
  std::string list;
  const auto add = [&](const Name& name, const Troubles& troubles) {
    for (const auto& [kind, word] : kKept) {
      const auto found = troubles.find(kind);
      if (found == troubles.end()) continue;
      const auto& trouble = found->second;
      list += fmt::format(
          "{}\n    {{\"gpu\": {}, \"mig\": {}, \"kind\": {}, \"needs\": {}, \"cause\": {}, "
          "\"remedy\": {}, \"xid\": {}, \"since\": {}}}",
          list.empty() ? "" : ",", json::quoted(name.first.text), json::quoted(name.second.text),
          json::quoted(word), json::quoted(to_string(trouble.needs)), json::quoted(trouble.cause),
          json::quoted(trouble.remedy), trouble.xid ? fmt::to_string(*trouble.xid) : "null",
          trouble.since_s);
    }
  };
  for (const auto& part : parts_) add(part.name, part.troubles);
  for (const auto& [name, troubles] : remembered_) add(name, troubles);
  return fmt::format("{{\n  \"schema\": {},\n  \"boot_id\": {},\n  \"troubles\": [{}{}]\n}}\n",
                     kSchema, json::quoted(boot_id), list, list.empty() ? "" : "\n  ");
}

Status Monitor::restore(std::string_view text, std::string_view boot_id) {
  if (text.size() > kTextLimit) return wrong("an absurd size");
  GANTRY_TRY(const auto document, json::Document::parse(std::string(text)));
  if (document["schema"].u64() != kSchema) return wrong("another schema");
  const bool rebooted = document["boot_id"].string() != boot_id;
  std::map<Name, Troubles> read;
  if (!document["troubles"].is(json::Kind::Array) || document["troubles"].size() > kTroubleLimit)
    return wrong("no list of troubles");
  for (const auto item : document["troubles"]) {
    const auto word = item["kind"].string();
    const auto kind = std::find_if(kKept.begin(), kKept.end(),
                                   [&](const Kept& kept) { return kept.word == word; });
    const auto needs = class_of(item["needs"].string().value_or(""));
    const auto gpu = item["gpu"].string();
    const auto since = item["since"].i64();
    if (kind == kKept.end() || !needs || !gpu || gpu->empty() || !since)
      return wrong("a trouble that makes no sense");
    if (rebooted && *needs != XidClass::Replace) continue;
    Trouble trouble{.needs = *needs,
                    .cause = item["cause"].string().value_or(""),
                    .remedy = item["remedy"].string().value_or(""),
                    .since_s = *since};
    const auto xid = item["xid"].u64();
    if (xid && *xid <= std::numeric_limits<unsigned>::max())
      trouble.xid = static_cast<unsigned>(*xid);
    read[{{*gpu}, {item["mig"].string().value_or("")}}][kind->kind] = std::move(trouble);
  }
  remembered_ = std::move(read);
  return {};
}

}  // namespace gantry::health
