// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/protocol.hpp"

#include "base/json/document.hpp"
#include "base/json/writer.hpp"
#include "sharing/policy/share_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace gantry::daemon {
namespace {

constexpr std::array<std::pair<RequestKind, std::string_view>, 8> kRequestNames{
    {{RequestKind::Create, "create"},
     {RequestKind::Hold, "hold"},
     {RequestKind::Remove, "remove"},
     {RequestKind::Set, "set"},
     {RequestKind::Show, "show"},
     {RequestKind::List, "list"},
     {RequestKind::Adopt, "adopt"},
     {RequestKind::Release, "release"}}};

constexpr std::array<Errc, 10> kCodes{
    Errc::Invalid,     Errc::NotFound, Errc::Exists,  Errc::Denied,   Errc::Busy,
    Errc::Unsupported, Errc::Timeout,  Errc::Corrupt, Errc::Internal, Errc::TooLarge};

std::string_view to_word(RequestKind ask) {
  const auto* found = std::find_if(kRequestNames.begin(), kRequestNames.end(),
                                   [&](const auto& row) { return row.first == ask; });
  return found->second;
}

Result<RequestKind> ask_from(json::Value value) {
  const auto word = value.string().value_or("");
  for (const auto& [ask, text] : kRequestNames) {
    if (text == word) return ask;
  }
  return Error(Errc::Invalid,
               "the share daemon knows these requests: create, hold, remove, set, show, list, "
               "adopt and release");
}

Status take_details(const json::Document& document, Request& question) {
  const bool named = question.ask != RequestKind::List && question.ask != RequestKind::Create &&
                     question.ask != RequestKind::Hold && question.ask != RequestKind::Release;
  question.name = document["name"].string().value_or("");
  if (named && (question.name.empty() || question.name.size() > policy::kMaxNameLength))
    return Error(Errc::Invalid, "the name of the share is missing");
  if (question.ask == RequestKind::Create || question.ask == RequestKind::Hold) {
    const auto share = document["share"];
    if (!share) return Error(Errc::Invalid, "the new share is missing");
    GANTRY_TRY(question.share, policy::share_from_json(share));
  }
  if (question.ask == RequestKind::Set) {
    GANTRY_TRY(question.changes, policy::changes_from_json(document["changes"]));
  }
  if (question.ask == RequestKind::Adopt) {
    const auto pid = document["pid"].u64().value_or(0);
    if (pid == 0 || pid > INT32_MAX) return Error(Errc::Invalid, "the pid is missing");
    question.pid = static_cast<pid_t>(pid);
    question.contained = document["contained"].boolean().value_or(false);
  }
  if (document["overcommit"].boolean().value_or(false))
    question.overcommit = policy::Overcommit::Allowed;
  return {};
}

// The daemon's error. Daemons of the last version send `error` alone, the whole sentence.
Error error_from(const json::Document& response) {
  const auto word = response["code"].string_or_empty();
  const auto* code =
      std::find_if(kCodes.begin(), kCodes.end(), [&](Errc one) { return to_string(one) == word; });
  const auto sentence =
      response["error"].string().value_or("the share daemon refused without a reason");
  return Error(code == kCodes.end() ? Errc::Internal : *code,
               response["cause"].string().value_or(sentence))
      .advise(response["cause"] ? response["remedy"].string_or_empty() : "");
}

}  // namespace

std::string to_line(const Request& question) {
  json::Writer out;
  out.object([&] {
    out.member("ask", to_word(question.ask));
    if (!question.name.empty()) out.member("name", question.name);
    if (question.share) {
      out.key("share");
      policy::write(out, *question.share);
    }
    if (question.ask == RequestKind::Set) {
      out.key("changes");
      policy::write(out, question.changes);
    }
    if (question.overcommit == policy::Overcommit::Allowed) out.member("overcommit", true);
    if (question.pid != 0) out.member("pid", question.pid);
    if (question.contained) out.member("contained", true);
  });
  return std::move(out).text();
}

Result<Request> parse_request(std::string_view line) {
  GANTRY_TRY(const auto document, json::Document::parse(std::string(line)));
  Request question;
  GANTRY_TRY(question.ask, ask_from(document["ask"]));
  GANTRY_CHECK(take_details(document, question));
  return question;
}

std::string to_response(const std::vector<ShareState>& shares) {
  json::Writer out;
  out.object([&] {
    out.member("ok", true);
    out.array("shares", shares, [&](const ShareState& share) { write(out, share); });
  });
  return std::move(out).text();
}

std::string to_response(const Error& error) {
  json::Writer out;
  out.object([&] {
    out.member("ok", false);
    out.member("code", to_string(error.code()));
    out.member("error", error.text());
    if (error.remedy().empty()) return;
    out.member("cause", error.cause());
    out.member("remedy", error.remedy());
  });
  return std::move(out).text();
}

Result<std::vector<ShareState>> parse_response(std::string_view line) {
  GANTRY_TRY(const auto document, json::Document::parse(std::string(line)));
  const auto ok = document["ok"].boolean();
  if (!ok) return Error(Errc::Corrupt, "the share daemon's answer is not in the expected format");
  if (!*ok) return error_from(document);
  std::vector<ShareState> shares;
  for (const auto value : document["shares"]) {
    GANTRY_TRY(auto state, state_from_json(value));
    shares.push_back(std::move(state));
  }
  return shares;
}

}  // namespace gantry::daemon
