// SPDX-License-Identifier: Apache-2.0
#include "base/core/base64.hpp"
#include "base/json/writer.hpp"
#include "cluster/admission/admission.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

namespace gantry::admission {
namespace {

// The API server cuts longer warnings, and drops all of them beyond 4096 bytes in total.
constexpr std::size_t kWarnings = 14;
constexpr std::size_t kWarningLength = 250;
constexpr std::size_t kUidLimit = 128;

// Cuts at the start of a character.
std::string cut(const std::string& text) {
  if (text.size() <= kWarningLength) return text;
  std::size_t end = kWarningLength;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end);
}

void write_response(json::Writer& out, std::string_view uid, const AdmissionResult& verdict) {
  const bool allowed = verdict.answer == Admission::Allowed;
  const bool denied = verdict.answer == Admission::Denied;
  out.object("response", [&] {
    out.member("uid", uid);
    out.member("allowed", allowed);
    if (!allowed) {
      out.object("status", [&] {
        out.member("status", "Failure");
        out.member("message", verdict.message);
        out.member("reason", denied ? "Forbidden" : "Invalid");
        out.member("code", denied ? 403 : 422);
      });
    } else if (!verdict.patch.empty()) {
      out.member("patchType", "JSONPatch");
      out.member("patch", to_base64(verdict.patch));
    }
    if (verdict.warnings.empty()) return;
    out.array("warnings",
              std::span(verdict.warnings).first(std::min(verdict.warnings.size(), kWarnings)),
              [&](const std::string& warning) { out.value(cut(warning)); });
  });
}

}  // namespace

Result<std::string> review(std::string text, const Policy& policy) {
  GANTRY_TRY(const auto document,
             json::Document::parse(std::move(text)).in("reading an AdmissionReview"));
  constexpr std::string_view kVersion = "admission.k8s.io/v1";
  if (document["kind"].string() != "AdmissionReview" || document["apiVersion"].string() != kVersion)
    return Error(Errc::Invalid, fmt::format("this is not an AdmissionReview of {}", kVersion));
  const auto request = document["request"];
  const auto uid = request["uid"].string().value_or("");
  if (uid.empty() || uid.size() > kUidLimit)
    return Error(Errc::Invalid, "the AdmissionReview has no request with a uid");
  json::Writer out;
  out.object([&] {
    out.member("apiVersion", kVersion);
    out.member("kind", "AdmissionReview");
    write_response(out, uid, admit_request(request, policy));
  });
  return std::move(out).text();
}

}  // namespace gantry::admission
