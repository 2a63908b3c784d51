// SPDX-License-Identifier: Apache-2.0
#include "base/core/base64.hpp"
#include "base/json/patch.hpp"
#include "cluster/webhook/life_internal.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace gantry::webhook {
namespace {

// The names that kubectl and cert-manager know; the bundle begins with the authority that signs.
std::vector<std::pair<std::string, const std::string*>> members(const Kept& kept) {
  return {{"tls.crt", &kept.serving.certificate},
          {"tls.key", &kept.serving.key},
          {"ca.crt", &kept.bundle},
          {"ca.key", &kept.authority.key},
          {"signing.crt", &kept.authority.certificate},
          {"next.crt", &kept.next.certificate},
          {"next.key", &kept.next.key}};
}

}  // namespace

Kept kept_in(const json::Document& secret) {
  const auto member = [&](std::string_view name) {
    const auto text = secret["data"][name].string();
    return text ? from_base64(*text).value_or("") : std::string();
  };
  Kept kept{.authority = {member("signing.crt"), member("ca.key")},
            .next = {member("next.crt"), member("next.key")},
            .serving = {member("tls.crt"), member("tls.key")},
            .bundle = member("ca.crt")};
  if (kept.authority.certificate.empty()) {
    const auto all = certificates_in(kept.bundle);
    if (!all.empty()) kept.authority.certificate = all.front();
  }
  return kept;
}

Result<std::string> new_secret(const KeeperOptions& options, const Kept& kept) {
  std::string data;
  for (const auto& [name, value] : members(kept)) {
    if (value->empty()) continue;
    data += fmt::format("{}\"{}\":\"{}\"", data.empty() ? "" : ",", name, to_base64(*value));
  }
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Secret","type":"kubernetes.io/tls","metadata":{{"name":{},)"
      R"("namespace":{},"labels":{{"app.kubernetes.io/part-of":"gantry"}}}},"data":{{{}}}}})",
      json::quoted(options.secret), json::quoted(options.name_space), data);
}

Result<std::string> changed_secret(const json::Document& secret, const Kept& kept) {
  json::Patch patch;
  for (const auto& [name, value] : members(kept)) {
    if (value->empty()) {
      patch.remove({"data", name});
    } else {
      patch.set({"data", name}, json::quoted(to_base64(*value)));
    }
  }
  return patch.apply(secret);
}

}  // namespace gantry::webhook
