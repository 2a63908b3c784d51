// SPDX-License-Identifier: Apache-2.0
// Puts a pod on a node: one request that carries the annotations too, so that there is no moment
// with one and without the other.
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"
#include "net/kube/api.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace gantry::kube {

struct Binding {
  std::string name_space;
  std::string pod;
  std::string uid;  // another pod of that name is not bound; "" = whichever has it
  std::string node;
  std::map<std::string, std::string> annotations;
};

enum class BindOutcome : std::uint8_t {
  Done,       // it is there with these annotations; also when only the answer was lost
  Elsewhere,  // on another node, or on this one with other annotations: somebody else bound it
  Gone,       // no such pod
  Replaced,   // that name belongs to another pod by now
  Deleting,
  Refused,  // the server says no: rights, a webhook, a gate that is not open yet
  Unknown   // no answer, and the pod has no node: the request may still come through
};
std::string_view to_string(BindOutcome bound);

struct BindResult {
  BindOutcome bound = BindOutcome::Unknown;
  std::string text;  // for people; "" when done
};

// The server is asked to give up after the API's own timeout too: what is Unknown by then can still
// come through for as long again. Where the answer is not clear the pod is read. An Api is for one
// thread at a time.
BindResult bind(Api& api, const Binding& binding);

// What a pod says of a binding; bind() uses it after an unclear answer, the scheduler when it sees
// a pod again whose binding was Unknown.
BindResult check_binding(const json::Document& pod, const Binding& binding);

}  // namespace gantry::kube
