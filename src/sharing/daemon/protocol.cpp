// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/protocol.hpp"

#include "base/json/document.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace gantry::daemon {
namespace {

using TextMember = std::pair<std::string_view, std::string policy::ShareText::*>;

constexpr std::array<std::pair<RequestKind, std::string_view>, 7> kWords{
    {{RequestKind::Create, "create"},
     {RequestKind::Hold, "hold"},
     {RequestKind::Remove, "remove"},
     {RequestKind::Set, "set"},
     {RequestKind::Show, "show"},
     {RequestKind::List, "list"},
     {RequestKind::Adopt, "adopt"}}};

constexpr std::array<TextMember, 10> kChanges{{
    {"gpus", &policy::ShareText::gpus},
    {"memory", &policy::ShareText::memory},
    {"compute", &policy::ShareText::compute},
    {"weight", &policy::ShareText::weight},
    {"excess", &policy::ShareText::excess},
    {"priority", &policy::ShareText::priority},
    {"on_violation", &policy::ShareText::on_violation},
    {"unattached", &policy::ShareText::unattached},
    {"context_memory", &policy::ShareText::context_memory},
    {"backend", &policy::ShareText::backend},
}};

constexpr std::array<Errc, 10> kCodes{
    Errc::Invalid,     Errc::NotFound, Errc::Exists,  Errc::Denied,   Errc::Busy,
    Errc::Unsupported, Errc::Timeout,  Errc::Corrupt, Errc::Internal, Errc::TooLarge};

std::string changes_json(const policy::ShareText& changes) {
  std::string text = "{";
  for (const auto& [key, member] : kChanges) {
    if ((changes.*member).empty()) continue;
    if (text.size() > 1) text += ',';
    text += fmt::format("{}:{}", json::quote(key), json::quote(changes.*member));
  }
  return text + "}";
}

Result<policy::ShareText> changes_from(json::Value object) {
  policy::ShareText changes;
  for (const auto value : object) {
    bool known = false;
    for (const auto& [key, member] : kChanges) {
      if (value.key() != key) continue;
      const auto text = value.string();
      if (!text || text->size() > policy::kMaxJsonLength) break;
      changes.*member = *text;
      known = true;
    }
    if (!known) return Error(Errc::Invalid, "a change needs the name of a limit and its text");
  }
  return changes;
}

Result<RequestKind> ask_from(json::Value value) {
  const auto word = value.string().value_or("");
  for (const auto& [ask, text] : kWords) {
    if (text == word) return ask;
  }
  return Error(
      Errc::Invalid,
      "the share daemon knows these requests: create, hold, remove, set, show, list and adopt");
}

Status take_details(const json::Document& document, Request& question) {
  const bool named = question.ask != RequestKind::List && question.ask != RequestKind::Create &&
                     question.ask != RequestKind::Hold;
  question.name = document["name"].string().value_or("");
  if (named && (question.name.empty() || question.name.size() > policy::kMaxNameLength))
    return Error(Errc::Invalid, "the name of the share is missing");
  if (question.ask == RequestKind::Create || question.ask == RequestKind::Hold) {
    const auto share = document["share"];
    if (!share) return Error(Errc::Invalid, "the new share is missing");
    GANTRY_TRY(question.share, policy::share_from_json(share.raw()));
  }
  if (question.ask == RequestKind::Set) {
    GANTRY_TRY(question.changes, changes_from(document["changes"]));
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

}  // namespace

std::string to_line(const Request& question) {
  std::string text;
  for (const auto& [ask, word] : kWords) {
    if (ask == question.ask) text = fmt::format(R"({{"ask":"{}")", word);
  }
  if (!question.name.empty()) text += fmt::format(R"(,"name":{})", json::quote(question.name));
  if (question.share) text += fmt::format(R"(,"share":{})", policy::to_json(*question.share));
  if (question.ask == RequestKind::Set)
    text += fmt::format(R"(,"changes":{})", changes_json(question.changes));
  if (question.overcommit == policy::Overcommit::Allowed) text += R"(,"overcommit":true)";
  if (question.pid != 0) text += fmt::format(R"(,"pid":{})", question.pid);
  if (question.contained) text += R"(,"contained":true)";
  return text + "}";
}

Result<Request> parse_request(std::string_view line) {
  GANTRY_TRY(const auto document, json::Document::parse(std::string(line)));
  Request question;
  GANTRY_TRY(question.ask, ask_from(document["ask"]));
  GANTRY_CHECK(take_details(document, question));
  return question;
}

std::string to_response(const std::vector<ShareState>& shares) {
  std::string text = R"({"ok":true,"shares":[)";
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (i > 0) text += ',';
    text += to_json(shares[i]);
  }
  return text + "]}";
}

std::string to_response(const Error& error) {
  return fmt::format(R"({{"ok":false,"code":{},"error":{}}})", json::quote(to_string(error.code())),
                     json::quote(error.text()));
}

Result<std::vector<ShareState>> parse_response(std::string_view line) {
  GANTRY_TRY(const auto document, json::Document::parse(std::string(line)));
  const auto ok = document["ok"].boolean();
  if (!ok) return Error(Errc::Corrupt, "the share daemon's answer is not in the expected format");
  if (!*ok) {
    const auto word = document["code"].string().value_or("");
    auto code = Errc::Internal;
    for (const auto one : kCodes) {
      if (to_string(one) == word) code = one;
    }
    return Error(code,
                 document["error"].string().value_or("the share daemon refused without a reason"));
  }
  std::vector<ShareState> shares;
  for (const auto value : document["shares"]) {
    GANTRY_TRY(auto state, state_from_json(value.raw()));
    shares.push_back(std::move(state));
  }
  return shares;
}

}  // namespace gantry::daemon
