// SPDX-License-Identifier: Apache-2.0
#include "cluster/webhook/life_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::webhook {
namespace {

constexpr std::int64_t kClocksDiffer = 3600;  // a certificate is good from an hour ago on

std::int64_t seconds(std::chrono::hours time) {
  return std::chrono::seconds(time).count();
}

Result<KeyPair> authority_from(const KeeperOptions& options, std::int64_t now) {
  // Two of one name would be one to a verifier that looks for an issuer.
  return make_authority(fmt::format("gantry {} {}", options.secret, now),
                        {now - kClocksDiffer, now + seconds(options.authority_life)});
}

Result<KeyPair> serving_from(const KeyPair& authority, const KeeperOptions& options,
                             std::int64_t now) {
  GANTRY_TRY(const auto limits, validity_of(authority.certificate));
  const auto until = std::min(now + seconds(options.serving_life), limits.until_unix_s);
  return make_serving(authority, options.names, {now - kClocksDiffer, until});
}

Result<Kept> fresh(const KeeperOptions& options, std::int64_t now) {
  Kept kept;
  GANTRY_TRY(kept.authority, authority_from(options, now));
  GANTRY_TRY(kept.serving, serving_from(kept.authority, options, now));
  kept.bundle = kept.authority.certificate;
  return kept;
}

// Those whose time is over are not needed to trust anything.
std::string living(const std::string& bundle, std::int64_t now) {
  std::string text;
  for (const auto& certificate : certificates_in(bundle)) {
    const auto validity = validity_of(certificate);
    if (validity.ok() && now < validity->until_unix_s) text += certificate;
  }
  return text;
}

bool serving_is_due(const Kept& kept, const KeeperOptions& options, std::int64_t now) {
  if (!check_serving(kept.serving, kept.bundle, options.names, now).ok()) return true;
  const auto has = validity_of(kept.serving.certificate);
  const auto may = validity_of(kept.authority.certificate);
  const auto life = seconds(options.serving_life);
  if (!has.ok() || !may.ok()) return true;
  // Near its authority's end a new one would last no longer than this one.
  const auto would_last = std::min(now + life, may->until_unix_s);
  return has->until_unix_s - now < life / 3 && would_last - has->until_unix_s > life / 10;
}

}  // namespace

Result<Kept> after(const std::optional<Kept>& before, const KeeperOptions& options,
                   std::int64_t now, NextTrusted next_is_trusted) {
  if (!before) return fresh(options, now);
  auto kept = *before;
  if (kept.authority.key.empty() && !kept.serving.certificate.empty()) {
    GANTRY_CHECK(check_serving(kept.serving, kept.bundle, options.names, now)
                     .in(fmt::format("Secret {}/{} has no ca.key, so somebody else renews it",
                                     options.name_space, options.secret)));
    return kept;
  }
  const auto authority = validity_of(kept.authority.certificate);
  if (!authority.ok() || now >= authority->until_unix_s ||
      !make_serving(kept.authority, options.names, {now, now + 1}).ok())
    return fresh(options, now);
  kept.bundle = living(kept.bundle, now);
  const bool due = authority->until_unix_s - now < seconds(options.authority_life) / 5;
  if (due && kept.next.key.empty()) {
    GANTRY_TRY(kept.next, authority_from(options, now));
    kept.bundle += kept.next.certificate;
  } else if (!kept.next.key.empty() && next_is_trusted == NextTrusted::Yes) {
    kept.authority = std::exchange(kept.next, {});
    GANTRY_TRY(kept.serving, serving_from(kept.authority, options, now));
  }
  if (serving_is_due(kept, options, now)) {
    GANTRY_TRY(kept.serving, serving_from(kept.authority, options, now));
  }
  return kept;
}

}  // namespace gantry::webhook
