// SPDX-License-Identifier: Apache-2.0
#include "node/why/manifest.hpp"

#include "base/core/text.hpp"
#include "base/json/document.hpp"
#include "base/yaml/value.hpp"
#include "cluster/podspec/ask.hpp"
#include "cluster/webhook/admit.hpp"
#include "node/why/pod.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::why {
namespace {

constexpr std::size_t kDocuments = 256;

std::string json_of(const yaml::Value& value) {
  using Kind = yaml::Value::Kind;
  std::string text;
  switch (value.kind) {
    case Kind::Null: return "null";
    case Kind::Scalar:
      if (!value.quoted && (value.text == "true" || value.text == "false")) return value.text;
      return json::quoted(value.text);
    case Kind::List:
      for (const auto& item : value.items) text += (text.empty() ? "" : ",") + json_of(item);
      return "[" + text + "]";
    case Kind::Map: break;
  }
  for (const auto& entry : value.entries)
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", json::quoted(entry.key),
                        json_of(entry.value));
  return "{" + text + "}";
}

std::vector<std::string> documents_in(std::string_view text) {
  std::vector<std::string> found(1);
  for (const auto line : lines(text)) {
    if (line == "---" || line.starts_with("--- ")) {
      found.emplace_back();
    } else {
      found.back() += fmt::format("{}\n", line);
    }
  }
  return found;
}

// The object that has spec.containers, in what is applied.
json::Value pod_in(json::Value object) {
  const auto spec = object["spec"];
  for (const auto pod : {object, spec["template"], spec["jobTemplate"]["spec"]["template"]}) {
    if (pod["spec"]["containers"]) return pod;
  }
  return {};
}

// "what is wrong; what to write instead", as the webhook says it.
Link refused_link(const std::string& message) {
  const auto cut = message.find("; ");
  Link link{.id = "spec.webhook", .what = "The webhook lets it in", .verdict = Verdict::Broken};
  link.cause = link.read = message.substr(0, cut);
  if (cut != std::string::npos) link.remedy = message.substr(cut + 2);
  return link;
}

// What it meets on the way into a cluster that shares GPUs.
std::vector<Link> webhook_links(json::Value pod) {
  std::vector<Link> links;
  const auto request = json::Document::parse(fmt::format(
      R"({{"operation":"CREATE","resource":{{"resource":"pods"}},"object":{}}})", pod.raw()));
  if (!request.ok()) return links;
  const auto verdict = webhook::judge(request->root(), {});
  if (verdict.answer != webhook::Answer::Allowed) {
    links.push_back(refused_link(verdict.message));
    // Whole GPUs are there without us, and then nobody refuses it.
    if (const auto ask = podspec::ask_of(pod); !ask.ok() || !*ask || !(*ask)->shared())
      links.back().verdict = Verdict::Doubtful;
    return links;
  }
  for (const auto& warning : webhook::annotation_warnings(pod)) {
    links.push_back({.id = "spec.annotation",
                     .what = "Its annotations mean something",
                     .verdict = Verdict::Doubtful,
                     .read = warning,
                     .cause = "",
                     .remedy = "gantry's docs/scheduling.md has those there are"});
  }
  return links;
}

void add_chain(std::vector<Chain>& chains, json::Value object, const std::string& file) {
  for (const auto item : object["items"]) add_chain(chains, item, file);
  const auto pod = pod_in(object);
  if (!pod) return;
  chains.push_back({.subject = fmt::format("{} {} of {}", object["kind"].string().value_or("pod"),
                                           object["metadata"]["name"].string().value_or("?"), file),
                    .links = spec_links(pod)});
  auto& chain = chains.back();
  if (chain.first_broken() != nullptr) return;  // the webhook would say the same again
  for (auto& link : webhook_links(pod)) chain.links.push_back(std::move(link));
}

}  // namespace

Result<std::vector<Chain>> why_manifest(std::string_view text, const std::string& file) {
  const auto documents = documents_in(text);
  if (documents.size() > kDocuments)
    return Error(Errc::Invalid, fmt::format("{} has more than {} documents", file, kDocuments));
  std::vector<Chain> chains;
  for (const auto& document : documents) {
    GANTRY_TRY(const auto value, yaml::parse(document, file));
    GANTRY_TRY(const auto object, json::Document::parse(json_of(value)));
    add_chain(chains, object.root(), file);
  }
  if (chains.empty())
    return Error(Errc::NotFound, fmt::format("{} has no pod: nothing with spec.containers", file));
  return chains;
}

}  // namespace gantry::why
