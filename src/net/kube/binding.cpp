// SPDX-License-Identifier: Apache-2.0
#include "net/kube/binding.hpp"

#include <fmt/format.h>

namespace gantry::kube {
namespace {

std::string text_of(json::Value value) {
  return value.string().value_or("");
}

std::string to_json(const Binding& binding) {
  std::string annotations;
  for (const auto& [key, value] : binding.annotations)
    annotations += fmt::format("{}{}:{}", annotations.empty() ? "" : ",", json::quoted(key),
                               json::quoted(value));
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Binding","metadata":{{"name":{},"namespace":{},"uid":{},)"
      R"("annotations":{{{}}}}},"target":{{"apiVersion":"v1","kind":"Node","name":{}}}}})",
      json::quoted(binding.pod), json::quoted(binding.name_space), json::quoted(binding.uid),
      annotations, json::quoted(binding.node));
}

// The server may have done it all the same, or somebody else has.
bool is_unclear(Errc code) {
  switch (code) {
    case Errc::Exists:
    case Errc::Busy:
    case Errc::Timeout:
    case Errc::Corrupt:
    case Errc::Internal: return true;
    default: return false;
  }
}

BindAnswer look(Api& api, const Binding& binding, const Error& why) {
  const auto pod = api.get(pod_path(binding.name_space, binding.pod));
  if (!pod.ok() && pod.error().code() == Errc::NotFound) return {Bound::Gone, pod.error().text()};
  if (!pod.ok())
    return {Bound::Unknown,
            fmt::format("{}; and the pod cannot be read: {}", why.text(), pod.error().text())};
  auto answer = bound_as(*pod, binding);
  if (answer.bound != Bound::Unknown) return answer;
  // A conflict is an answer: it was not done and will not be.
  return {why.code() == Errc::Exists ? Bound::Refused : Bound::Unknown, why.text()};
}

}  // namespace

std::string_view to_string(Bound bound) {
  switch (bound) {
    case Bound::Done: return "bound";
    case Bound::Elsewhere: return "bound by somebody else";
    case Bound::Gone: return "gone";
    case Bound::Replaced: return "replaced by another pod of its name";
    case Bound::Deleting: return "being deleted";
    case Bound::Refused: return "refused";
    case Bound::Unknown: break;
  }
  return "not known";
}

BindAnswer bound_as(const json::Document& pod, const Binding& binding) {
  const auto metadata = pod["metadata"];
  const auto name = fmt::format("{}/{}", binding.name_space, binding.pod);
  if (const auto uid = text_of(metadata["uid"]); !binding.uid.empty() && uid != binding.uid)
    return {Bound::Replaced,
            fmt::format("{} has the uid {} by now, not {}", name, uid, binding.uid)};
  const auto node = text_of(pod["spec"]["nodeName"]);
  if (node.empty()) {
    if (metadata["deletionTimestamp"])
      return {Bound::Deleting, fmt::format("{} is being deleted", name)};
    return {Bound::Unknown, fmt::format("{} has no node", name)};
  }
  if (node != binding.node) return {Bound::Elsewhere, fmt::format("{} is on {}", name, node)};
  for (const auto& [key, value] : binding.annotations) {
    if (metadata["annotations"][key].string() != value)
      return {Bound::Elsewhere, fmt::format("{} is on {} with another {}", name, node, key)};
  }
  return {Bound::Done, ""};
}

BindAnswer bind(Api& api, const Binding& binding) {
  const auto path = fmt::format("{}/binding?timeout={}ms",
                                pod_path(binding.name_space, binding.pod), api.timeout().count());
  const auto done = api.create(path, to_json(binding));
  if (done.ok()) return {Bound::Done, ""};
  const auto& error = done.error();
  // A connection that broke has said nothing of what the server did.
  if (is_unclear(error.code()) || error.sys_errno() != 0) return look(api, binding, error);
  return {error.code() == Errc::NotFound ? Bound::Gone : Bound::Refused, error.text()};
}

}  // namespace gantry::kube
