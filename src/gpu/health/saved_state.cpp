// SPDX-License-Identifier: Apache-2.0
// The health state that survives a restart of the agent: only the facts that readings cannot
// provide again.
#include "base/json/document.hpp"
#include "base/json/writer.hpp"
#include "gpu/health/health.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace gantry::health {
namespace {

constexpr std::size_t kTextLimit = std::size_t{1} << 20;
constexpr std::size_t kMaxFaults = 10'000;
constexpr std::uint64_t kSchema = 1;

// Other faults appear again in the first readings.
struct SavedFault {
  FaultKind kind;
  std::string_view word;
};
constexpr std::array kSavedFaults{SavedFault{FaultKind::Event, "event"},
                                  SavedFault{FaultKind::Remapping, "remapping"}};

Error wrong(std::string_view what) {
  return {Errc::Corrupt, fmt::format("the saved GPU health has {}", what)};
}

}  // namespace

std::string HealthMonitor::saved(std::string_view boot_id) const {
  struct Row {
    const Name* name;
    std::string_view word;
    const Fault* fault;
  };
  std::vector<Row> rows;
  const auto add = [&](const Name& name, const Faults& faults) {
    for (const auto& [kind, word] : kSavedFaults) {
      if (const auto found = faults.find(kind); found != faults.end())
        rows.push_back({&name, word, &found->second});
    }
  };
  for (const auto& device : devices_) add(device.name, device.faults);
  for (const auto& [name, faults] : remembered_) add(name, faults);
  json::Writer out(json::Layout::Indented);
  const auto write = [&](const Row& row) {
    out.object([&] {
      out.member("gpu", row.name->first.text);
      out.member("mig", row.name->second.text);
      out.member("kind", row.word);
      out.member("needs", to_string(row.fault->needs));
      out.member("cause", row.fault->cause);
      out.member("remedy", row.fault->remedy);
      out.member("xid", row.fault->xid);
      out.member("since", row.fault->since_s);
    });
  };
  out.object([&] {
    out.member("schema", kSchema);
    out.member("boot_id", boot_id);
    rows.empty() ? out.array("troubles", [] {}) : out.rows("troubles", rows, write);
  });
  return out.text() + "\n";
}

Status HealthMonitor::restore(std::string_view text, std::string_view boot_id) {
  if (text.size() > kTextLimit) return wrong("too many bytes");
  GANTRY_TRY(const auto document, json::Document::parse(std::string(text)));
  if (document["schema"].u64() != kSchema) return wrong("an unknown schema");
  const bool rebooted = document["boot_id"].string() != boot_id;
  std::map<Name, Faults> read;
  if (!document["troubles"].is(json::Kind::Array) || document["troubles"].size() > kMaxFaults)
    return wrong("no list of troubles");
  for (const auto item : document["troubles"]) {
    const auto word = item["kind"].string();
    const auto kind = std::find_if(kSavedFaults.begin(), kSavedFaults.end(),
                                   [&](const SavedFault& kept) { return kept.word == word; });
    const auto needs = xid_class_from_string(item["needs"].string().value_or(""));
    const auto gpu = item["gpu"].string();
    const auto since = item["since"].i64();
    if (kind == kSavedFaults.end() || !needs || !gpu || gpu->empty() || !since)
      return wrong("an entry that is not valid");
    if (rebooted && *needs != XidClass::Replace) continue;
    Fault fault{.needs = *needs,
                .cause = item["cause"].string().value_or(""),
                .remedy = item["remedy"].string().value_or(""),
                .since_s = *since};
    const auto xid = item["xid"].u64();
    if (xid && *xid <= std::numeric_limits<unsigned>::max())
      fault.xid = static_cast<unsigned>(*xid);
    read[{{*gpu}, {item["mig"].string().value_or("")}}][kind->kind] = std::move(fault);
  }
  remembered_ = std::move(read);
  return {};
}

}  // namespace gantry::health
