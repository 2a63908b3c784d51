// SPDX-License-Identifier: Apache-2.0
// Binds a pod to a node. The same request carries the annotations, so the pod never has one without
// the other.
#pragma once

#include "base/core/object_ref.hpp"
#include "base/core/result.hpp"
#include "base/json/document.hpp"
#include "net/kube/api.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace gantry::kube {

struct Binding {
  PodRef pod;  // a pod with the same name and another uid is not bound; uid "" = any uid
  std::string node;
  std::map<std::string, std::string> annotations;
};

enum class BindOutcome : std::uint8_t {
  Done,       // bound with these annotations; also if only the answer was lost
  Elsewhere,  // on another node, or on this one with other annotations: another scheduler bound it
  Gone,       // the pod does not exist
  Replaced,   // another pod has this name now
  Deleting,
  Refused,  // the server refused: permissions, a webhook, a scheduling gate
  Unknown   // no answer, and the pod has no node: the request may still take effect
};
std::string_view to_string(BindOutcome bound);

struct BindResult {
  BindOutcome bound = BindOutcome::Unknown;
  std::string text;  // for people; "" when done
};

// The server is also asked to give up after the timeout of `api`: an Unknown request can still take
// effect for that time again. If the answer is not clear, the pod is read. Only one thread may use
// an Api at a time.
BindResult bind(Api& api, const Binding& binding);

// Derives the result of a binding from the pod. bind() uses it after an unclear answer, the
// scheduler when it sees a pod whose binding was Unknown.
BindResult check_binding(const json::Document& pod, const Binding& binding);

}  // namespace gantry::kube
