// SPDX-License-Identifier: Apache-2.0
#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "install/driver_package/transfer_internal.hpp"
#include "net/http/authority.hpp"
#include "net/http/client.hpp"

#include <fmt/format.h>

namespace gantry::driver_package {

std::optional<ContentRange> parse_content_range(std::string_view value) {
  if (!value.starts_with("bytes ")) return std::nullopt;
  value = trim(value.substr(6));
  const auto dash = value.find('-');
  const auto slash = value.find('/');
  if (dash == std::string_view::npos || slash == std::string_view::npos || slash < dash)
    return std::nullopt;
  const auto first = parse_u64(value.substr(0, dash));
  const auto last = parse_u64(value.substr(dash + 1, slash - dash - 1));
  const auto total = parse_u64(value.substr(slash + 1));
  if (!first || !last || *last < *first) return std::nullopt;
  if (!total && value.substr(slash + 1) != "*") return std::nullopt;
  if (total && *last >= *total) return std::nullopt;
  return ContentRange{.first = *first, .total = total};
}

std::string validator_of(const http::Response& head) {
  const auto usable = [](const std::string* value) {
    return value != nullptr && !value->empty() && value->size() <= 256 &&
           printable(*value) == *value;
  };
  const auto* tag = http::find(head.headers, "ETag");
  if (usable(tag) && tag->front() == '"') return *tag;  // W/"..." does not promise the same bytes
  const auto* date = http::find(head.headers, "Last-Modified");
  return usable(date) ? *date : "";
}

Result<std::string> redirect(std::string_view from, std::string_view location,
                             const DownloadRequest& request) {
  GANTRY_TRY(const auto base, http::parse_url(from));
  const auto scheme = base.endpoint.secure ? "https:" : "http:";
  std::string next(location.substr(0, location.find('#')));
  if (next.starts_with("//")) {
    next = scheme + next;
  } else if (next.starts_with('/')) {
    next = fmt::format("{}//{}{}", scheme, http::authority(base.endpoint), next);
  }
  GANTRY_TRY(const auto target, http::parse_url(next).in("a redirection"));
  if (base.endpoint.secure && !target.endpoint.secure && request.package.sha256.empty())
    return Error(Errc::Denied, fmt::format("redirected from https to {}", printable(next)))
        .advise("pin the file's SHA-256 digest");
  auto with_target = request;
  with_target.package.url = next;
  GANTRY_CHECK(check_digest_source(with_target));
  return next;
}

}  // namespace gantry::driver_package
