// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "base/json/document.hpp"
#include "node/options/options.hpp"

#include <fmt/format.h>

namespace gantry::options {
namespace {

using json::Value;

// Go's JSON reader accepts keys in any case.
Value member(Value object, std::string_view lower) {
  if (!object.is(json::Kind::Object)) return {};
  for (const auto value : object) {
    if (to_lower(value.key()) == lower && !value.is(json::Kind::Null)) return value;
  }
  return {};
}

Result<std::string> string_member(Value object, std::string_view lower) {
  const auto value = member(object, lower);
  if (!value) return std::string();
  auto text = value.string();
  if (!text) return Error(Errc::Invalid, fmt::format("{} is not a string", value.key()));
  return *std::move(text);
}

Result<std::int64_t> number_of(Value object, std::string_view lower) {
  const auto value = member(object, lower);
  if (!value) return std::int64_t{0};
  const auto number = value.i64();
  if (!number || *number < 0 || *number > 1024) {
    return Error(Errc::Invalid, fmt::format("{} is not a number from 0 to 1024", value.key()));
  }
  return *number;
}

Status read_gke_sharing(Value sharing, GkeConfig& config) {
  GANTRY_TRY(const auto strategy, string_member(sharing, "gpusharingstrategy"));
  GANTRY_TRY(config.clients_per_gpu, number_of(sharing, "maxsharedclientspergpu"));
  if (strategy == "time-sharing") {
    config.sharing = SharingKind::TimeSlicing;
  } else if (strategy == "mps") {
    config.sharing = SharingKind::Mps;
  } else if (!strategy.empty()) {
    return Error(Errc::Invalid, fmt::format("GPUSharingStrategy `{}` is neither time-sharing nor "
                                            "mps",
                                            strategy));
  }
  if ((config.sharing == SharingKind::None) != (config.clients_per_gpu == 0)) {
    return Error(Errc::Invalid,
                 "GPUSharingStrategy and MaxSharedClientsPerGPU belong together: one is missing");
  }
  return {};
}

Status read_xids(Value list, GkeConfig& config) {
  if (!list) return {};
  if (!list.is(json::Kind::Array) || list.size() > 256) {
    return Error(Errc::Invalid, "HealthCriticalXid is not a list of at most 256 numbers");
  }
  for (const auto value : list) {
    const auto xid = value.i64();
    if (!xid || *xid < 0) return Error(Errc::Invalid, "HealthCriticalXid: not a number");
    config.critical_xids.push_back(*xid);
  }
  return {};
}

}  // namespace

Result<GkeConfig> parse_gke_config(std::string_view text) {
  GANTRY_TRY(const auto document, json::Document::parse(std::string(text)));
  const auto root = document.root();
  if (!root.is(json::Kind::Object)) return Error(Errc::Invalid, "not an object");
  GkeConfig config;
  GANTRY_TRY(config.partition_size, string_member(root, "gpupartitionsize"));
  GANTRY_CHECK(read_gke_sharing(member(root, "gpusharingconfig"), config));
  // The older name, used if it is set.
  GANTRY_TRY(const auto clients, number_of(root, "maxtimesharedclientspergpu"));
  if (clients > 0) {
    config.sharing = SharingKind::TimeSlicing;
    config.clients_per_gpu = clients;
  }
  GANTRY_CHECK(read_xids(member(root, "healthcriticalxid"), config));
  return config;
}

}  // namespace gantry::options
