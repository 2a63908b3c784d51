// SPDX-License-Identifier: Apache-2.0
#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "install/driver_package/transfer_internal.hpp"
#include "net/http/authority.hpp"
#include "net/http/client.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace gantry::driver_package {
namespace {

// "https://..." of section 3.1 of RFC 3986.
bool has_scheme(std::string_view reference) {
  const auto colon = reference.find_first_of(":/?#");
  return colon != std::string_view::npos && colon > 0 && reference[colon] == ':';
}

// Section 5.2.4: "/a/b/../c" is "/a/c".
std::string without_dots(std::string_view path) {
  std::vector<std::string_view> kept;
  const auto parts = split(path.substr(1), '/');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool last = i + 1 == parts.size();
    const bool dots = parts[i] == "." || parts[i] == "..";
    if (parts[i] == ".." && !kept.empty()) kept.pop_back();
    if (!dots)
      kept.push_back(parts[i]);
    else if (last)
      kept.emplace_back();  // "/a/.." is a directory
  }
  return fmt::format("/{}", fmt::join(kept, "/"));
}

// Section 5.2.2, for a reference without scheme and host.
std::string target_of(std::string_view base, std::string_view reference) {
  const auto base_path = base.substr(0, base.find('?'));
  if (reference.starts_with('?')) return std::string(base_path) + std::string(reference);
  const auto query = std::min(reference.find('?'), reference.size());
  const auto directory = base_path.substr(0, base_path.rfind('/') + 1);
  const auto path =
      reference.starts_with('/')
          ? std::string(reference.substr(0, query))
          : fmt::format("{}{}", directory.empty() ? "/" : directory, reference.substr(0, query));
  return without_dots(path) + std::string(reference.substr(query));
}

}  // namespace

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
  } else if (!next.empty() && !has_scheme(next)) {
    next = fmt::format("{}//{}{}", scheme, http::authority(base.endpoint),
                       target_of(base.prefix, next));
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
