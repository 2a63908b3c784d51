// SPDX-License-Identifier: Apache-2.0
#include "net/kube/binding.hpp"

#include "base/json/writer.hpp"

#include <fmt/format.h>

#include <utility>

namespace gantry::kube {
namespace {

std::string binding_json(const Binding& binding) {
  json::Writer out;
  out.object([&] {
    out.member("apiVersion", "v1");
    out.member("kind", "Binding");
    out.object("metadata", [&] {
      out.member("name", binding.pod.name);
      out.member("namespace", binding.pod.name_space);
      out.member("uid", binding.pod.uid);
      out.object("annotations", binding.annotations);
    });
    out.object("target", [&] {
      out.member("apiVersion", "v1");
      out.member("kind", "Node");
      out.member("name", binding.node);
    });
  });
  return std::move(out).text();
}

// The server may have bound the pod anyway, or another scheduler has.
bool is_outcome_unknown(Errc code) {
  switch (code) {
    case Errc::Exists:
    case Errc::Busy:
    case Errc::Timeout:
    case Errc::Corrupt:
    case Errc::TooLarge:
    case Errc::Internal: return true;
    default: return false;
  }
}

BindResult look(Api& api, const Binding& binding, const Error& why) {
  const auto pod = api.get(pod_path(binding.pod.name_space, binding.pod.name));
  if (!pod.ok() && pod.error().code() == Errc::NotFound)
    return {BindOutcome::Gone, pod.error().text()};
  if (!pod.ok())
    return {BindOutcome::Unknown,
            fmt::format("{}; and the pod cannot be read: {}", why.text(), pod.error().text())};
  auto answer = check_binding(*pod, binding);
  if (answer.bound != BindOutcome::Unknown) return answer;
  // A conflict is a definite answer: the pod was not bound and will not be.
  return {why.code() == Errc::Exists ? BindOutcome::Refused : BindOutcome::Unknown, why.text()};
}

}  // namespace

std::string_view to_string(BindOutcome bound) {
  switch (bound) {
    case BindOutcome::Done: return "bound";
    case BindOutcome::Elsewhere: return "bound by another scheduler";
    case BindOutcome::Gone: return "gone";
    case BindOutcome::Replaced: return "replaced by another pod with the same name";
    case BindOutcome::Deleting: return "being deleted";
    case BindOutcome::Refused: return "refused";
    case BindOutcome::Unknown: break;
  }
  return "not known";
}

BindResult check_binding(const json::Document& pod, const Binding& binding) {
  const auto metadata = pod["metadata"];
  const auto name = to_string(binding.pod);
  if (const auto uid = metadata["uid"].string().value_or("");
      !binding.pod.uid.empty() && uid != binding.pod.uid)
    return {BindOutcome::Replaced,
            fmt::format("{} has the uid {} now, not {}", name, uid, binding.pod.uid)};
  const auto node = pod["spec"]["nodeName"].string().value_or("");
  if (node.empty()) {
    if (metadata["deletionTimestamp"])
      return {BindOutcome::Deleting, fmt::format("{} is being deleted", name)};
    return {BindOutcome::Unknown, fmt::format("{} has no node", name)};
  }
  if (node != binding.node) return {BindOutcome::Elsewhere, fmt::format("{} is on {}", name, node)};
  for (const auto& [key, value] : binding.annotations) {
    if (metadata["annotations"][key].string() != value)
      return {BindOutcome::Elsewhere, fmt::format("{} is on {} with another {}", name, node, key)};
  }
  return {BindOutcome::Done, ""};
}

BindResult bind(Api& api, const Binding& binding) {
  const auto path =
      fmt::format("{}/binding?timeout={}ms", pod_path(binding.pod.name_space, binding.pod.name),
                  api.timeout().count());
  const auto done = api.create(path, binding_json(binding));
  if (done.ok()) return {BindOutcome::Done, ""};
  const auto& error = done.error();
  // A broken connection says nothing about what the server did.
  if (is_outcome_unknown(error.code()) || error.sys_errno() != 0) return look(api, binding, error);
  return {error.code() == Errc::NotFound ? BindOutcome::Gone : BindOutcome::Refused, error.text()};
}

}  // namespace gantry::kube
