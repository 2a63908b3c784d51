// SPDX-License-Identifier: Apache-2.0
#include "base/core/base64.hpp"
#include "cluster/webhook/admission.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::webhook {
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

std::string warnings_text(const std::vector<std::string>& warnings) {
  std::string text;
  for (std::size_t at = 0; at < std::min(warnings.size(), kWarnings); ++at)
    text += fmt::format("{}{}", at == 0 ? "" : ",", json::quote(cut(warnings[at])));
  return text;
}

std::string response(std::string_view uid, const AdmissionResult& verdict) {
  std::string text = fmt::format(R"("uid":{},"allowed":{})", json::quote(uid),
                                 verdict.answer == Admission::Allowed);
  if (verdict.answer != Admission::Allowed) {
    const bool denied = verdict.answer == Admission::Denied;
    text += fmt::format(R"(,"status":{{"status":"Failure","message":{},"reason":"{}","code":{}}})",
                        json::quote(verdict.message), denied ? "Forbidden" : "Invalid",
                        denied ? 403 : 422);
  } else if (!verdict.patch.empty()) {
    text += fmt::format(R"(,"patchType":"JSONPatch","patch":"{}")", to_base64(verdict.patch));
  }
  if (!verdict.warnings.empty())
    text += fmt::format(R"(,"warnings":[{}])", warnings_text(verdict.warnings));
  return text;
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
  return fmt::format(R"({{"apiVersion":"{}","kind":"AdmissionReview","response":{{{}}}}})",
                     kVersion, response(uid, admit_request(request, policy)));
}

}  // namespace gantry::webhook
