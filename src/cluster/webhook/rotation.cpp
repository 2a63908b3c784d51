// SPDX-License-Identifier: Apache-2.0
#include "cluster/webhook/rotation_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::webhook {
namespace {

constexpr std::int64_t kClockSkewSeconds = 3600;  // a certificate is valid from an hour ago

std::int64_t seconds(std::chrono::hours time) {
  return std::chrono::seconds(time).count();
}

Result<KeyPair> new_ca(const RotationOptions& options, std::int64_t now) {
  // Verifiers look for an issuer by name, so two authorities need different names.
  return make_ca(fmt::format("gantry {} {}", options.secret, now),
                 {now - kClockSkewSeconds, now + seconds(options.authority_life)});
}

Result<KeyPair> new_serving_certificate(const KeyPair& authority, const RotationOptions& options,
                                        std::int64_t now) {
  GANTRY_TRY(const auto limits, validity_of(authority.certificate));
  const auto until = std::min(now + seconds(options.serving_life), limits.until_unix_s);
  return make_serving_certificate(authority, options.names, {now - kClockSkewSeconds, until});
}

Result<SecretContents> fresh(const RotationOptions& options, std::int64_t now) {
  SecretContents contents;
  GANTRY_TRY(contents.authority, new_ca(options, now));
  GANTRY_TRY(contents.serving, new_serving_certificate(contents.authority, options, now));
  contents.bundle = contents.authority.certificate;
  return contents;
}

// Drops expired authorities: nothing needs them.
std::string unexpired(const std::string& bundle, std::int64_t now) {
  std::string text;
  for (const auto& certificate : certificates_in(bundle)) {
    const auto validity = validity_of(certificate);
    if (validity.ok() && now < validity->until_unix_s) text += certificate;
  }
  return text;
}

bool serving_is_due(const SecretContents& contents, const RotationOptions& options,
                    std::int64_t now) {
  if (!check_serving(contents.serving, contents.bundle, options.names, now).ok()) return true;
  const auto has = validity_of(contents.serving.certificate);
  const auto may = validity_of(contents.authority.certificate);
  const auto life = seconds(options.serving_life);
  if (!has.ok() || !may.ok()) return true;
  // Near the end of its authority, a new certificate would not last longer than this one.
  const auto would_last = std::min(now + life, may->until_unix_s);
  return has->until_unix_s - now < life / 3 && would_last - has->until_unix_s > life / 10;
}

}  // namespace

Result<SecretContents> next_contents(const std::optional<SecretContents>& before,
                                     const RotationOptions& options, std::int64_t now,
                                     NextTrusted next_is_trusted) {
  if (!before) return fresh(options, now);
  auto contents = *before;
  if (contents.authority.key.empty() && !contents.serving.certificate.empty()) {
    GANTRY_CHECK(check_serving(contents.serving, contents.bundle, options.names, now)
                     .in(fmt::format("Secret {}/{} has no ca.key, so Gantry cannot renew it",
                                     options.name_space, options.secret)));
    return contents;
  }
  const auto authority = validity_of(contents.authority.certificate);
  if (!authority.ok() || now >= authority->until_unix_s ||
      !make_serving_certificate(contents.authority, options.names, {now, now + 1}).ok())
    return fresh(options, now);
  contents.bundle = unexpired(contents.bundle, now);
  const bool due = authority->until_unix_s - now < seconds(options.authority_life) / 5;
  if (due && contents.next.key.empty()) {
    GANTRY_TRY(contents.next, new_ca(options, now));
    contents.bundle += contents.next.certificate;
  } else if (!contents.next.key.empty() && next_is_trusted == NextTrusted::Yes) {
    contents.authority = std::exchange(contents.next, {});
    GANTRY_TRY(contents.serving, new_serving_certificate(contents.authority, options, now));
  }
  if (serving_is_due(contents, options, now)) {
    GANTRY_TRY(contents.serving, new_serving_certificate(contents.authority, options, now));
  }
  return contents;
}

}  // namespace gantry::webhook
