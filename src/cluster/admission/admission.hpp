// SPDX-License-Identifier: Apache-2.0
// The admission webhook's decision: a pod that asks for GPUs is completed, rewritten from older
// forms, or rejected with a sentence that says what to write instead. Pods that ask for no GPU pass
// unchanged. Pure: an AdmissionReview in, an AdmissionReview out.
//
// On CREATE of a pod that asks for GPUs:
//   rejected  requests that podspec::parse_request rejects; spec.nodeName, which bypasses the
//             scheduler; annotations with which schedulers record a placement; a privileged
//             container that asks for a share
//   completed nvidia.com/gpu: 1 if only memory or cores are given; limits if there are only
//             requests; gantry.dev/share: 1 with aliyun.com/gpu-mem if that counts MiB;
//             schedulerName and runtimeClassName if they are configured and the pod names none
//   rewritten alpha.kubernetes.io/nvidia-gpu becomes nvidia.com/gpu; hostPath volumes with the
//             driver's files, and their mounts, are removed: the node provides its own files, and
//             the volumes would hide them
// A mirror pod, which a kubelet creates for a static pod, passes: the pod runs anyway.
//
// On UPDATE, also of pods/status, pods/resize and pods/ephemeralcontainers: only `trusted` users
// may change a pod's placement, and the GPU request cannot change once the pod has a node. So a
// share cannot be resized in place; cpu and memory can. Debug containers pass, with a warning if
// they are privileged: they ask for no GPU, and the cluster decides who may add one.
//
// On CREATE of pods/binding, and of its older name bindings: only `trusted` users may set the
// annotations.
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::admission {

struct Policy {
  std::uint64_t unit_mib = 1024;  // what aliyun.com/gpu-mem counts in this cluster: 1024 or 1
  std::string scheduler_name;     // "": pods keep their schedulerName
  // For nodes whose engine has no CDI and that share their GPUs; "": pods keep their
  // runtimeClassName. On such a node nvidia.com/gpu is a slot, too, so pods of whole GPUs get it.
  std::string runtime_class;
  // Names of users that may write placements: the scheduler and the agent, as in
  // "system:serviceaccount:kube-system:gantry-scheduler".
  std::vector<std::string> trusted;
};

enum class Admission : std::uint8_t {
  Allowed,
  Denied,  // 403: not for this user, or not at all
  Invalid  // 422: the object must be written differently
};

struct AdmissionResult {
  Admission answer = Admission::Allowed;
  std::string message;  // why not, and what to write: "cause; remedy"
  std::string cause;    // the two parts of the message
  std::string remedy;   // "": none
  std::string patch;    // RFC 6902, as JSON; "": nothing changes
  // About settings that work but are unusual; kubectl prints them.
  std::vector<std::string> warnings;
};

// Decides about the `request` of an AdmissionReview.
AdmissionResult admit_request(const json::Value& request, const Policy& policy);

// Warnings about unknown annotations with our prefix, with the name that may have been meant.
std::vector<std::string> annotation_warnings(const json::Value& pod);

// Handles a whole review. Invalid if the text is not an AdmissionReview of admission.k8s.io/v1 with
// a request; every other error is reported inside the review.
Result<std::string> review(std::string text, const Policy& policy);

}  // namespace gantry::admission
