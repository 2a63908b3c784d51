// SPDX-License-Identifier: Apache-2.0
#include "doctor/engine/report.hpp"

#include <nlohmann/json.hpp>

namespace gantry::doctor {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const std::vector<Evidence>& evidence) {
  Json array = Json::array();
  for (const auto& item : evidence)
    array.push_back({{"source", item.source}, {"value", item.value}});
  return array;
}

// The command that fixes it; null if there is none.
Json offered(const CheckResult& outcome) {
  return outcome.fix.empty() ? Json(nullptr) : Json(outcome.fix);
}

Json to_json(const CheckResult& outcome) {
  const auto& check = *outcome.check;
  Json json{{"id", check.id},
            {"reference", check.reference},
            {"area", to_string(check.area)},
            {"title", check.title},
            {"verdict", to_string(outcome.finding.verdict)},
            {"summary", outcome.finding.summary},
            {"read", to_json(outcome.finding.evidence)},
            {"fix_class", letter(check.fix_class)},
            {"fix", offered(outcome)}};
  if (outcome.finding.verdict != Verdict::Ok && outcome.finding.verdict != Verdict::Skip) {
    json["cause"] = outcome.cause();
    json["remedy"] = outcome.remedy();
    if (outcome.offer == FixOffer::ByHand) json["by_hand"] = check.by_hand;
  }
  return json;
}

Json to_json(const FixReport& fix) {
  Json steps = Json::array();
  for (const auto& step : fix.steps) {
    Json json{{"did", step.what}};
    if (!step.error.empty()) json["error"] = step.error;
    steps.push_back(std::move(json));
  }
  return {{"id", fix.check->id},
          {"state", to_string(fix.state)},
          {"steps", std::move(steps)},
          {"after", to_string(fix.after)},
          {"text", fix.text}};
}

// Evidence can contain any bytes; invalid UTF-8 becomes a replacement character.
std::string dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string report_json(const std::vector<CheckResult>& outcomes,
                        const std::vector<FixReport>& fixes, const Guest& guest) {
  const auto counts = count(outcomes);
  Json json{{"schema", kReportSchema}};
  json["guest"] = {{"known", guest.known},
                   {"virtual", guest.is_virtual()},
                   {"hypervisor", guest.name},
                   {"wsl", guest.wsl},
                   {"read", to_json(guest.evidence)}};
  json["summary"] = {{"checks", counts.total()}, {"ok", counts.ok},     {"info", counts.info},
                     {"warn", counts.warn},      {"fail", counts.fail}, {"skip", counts.skip}};
  json["unreadable"] = Json::array();  // ids of checks that only root can run
  for (const auto& outcome : outcomes) {
    if (outcome.finding.needs_root) json["unreadable"].push_back(outcome.check->id);
  }
  json["checks"] = Json::array();
  for (const auto& outcome : outcomes) json["checks"].push_back(to_json(outcome));
  if (!fixes.empty()) {
    json["fixes"] = Json::array();
    for (const auto& fix : fixes) json["fixes"].push_back(to_json(fix));
  }
  return dump(json);
}

std::string list_json(const std::vector<const Check*>& checks) {
  Json json{{"schema", kReportSchema}, {"checks", Json::array()}};
  for (const auto* check : checks) {
    json["checks"].push_back({{"id", check->id},
                              {"reference", check->reference},
                              {"area", to_string(check->area)},
                              {"title", check->title},
                              {"reads", check->reads},
                              {"cause", check->cause},
                              {"remedy", check->remedy},
                              {"fix_class", letter(check->fix_class)},
                              {"fix", fix_rule(*check)},
                              {"by_hand", check->by_hand},
                              {"afterwards", check->afterwards}});
  }
  return dump(json);
}

}  // namespace gantry::doctor
