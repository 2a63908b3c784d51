// SPDX-License-Identifier: Apache-2.0
// The admission webhook's decision: a pod that asks for GPUs is filled in, rewritten from older
// ways of asking, or refused with a sentence that says what to write instead. Pods that ask for
// none pass untouched. Pure: an AdmissionReview in, an AdmissionReview out.
//
// On CREATE of a pod that asks:
//   refused   what podspec::parse_request refuses; spec.nodeName, which goes past the scheduler;
//   annotations by
//             which schedulers say where a pod is; a privileged container that asks for a share
//   filled    nvidia.com/gpu: 1 beside its memory or cores; limits where requests are alone;
//             gantry.dev/share: 1 beside aliyun.com/gpu-mem where that counts MiB; schedulerName
//             where one is configured and the pod names none
//   rewritten alpha.kubernetes.io/nvidia-gpu to nvidia.com/gpu; hostPath volumes of the driver's
//             files, and their mounts, go: the node brings its own, and they would lie over them
// A mirror of a static pod, made by a kubelet, passes: the pod runs whatever we say.
//
// On UPDATE, also of pods/status, pods/resize and pods/ephemeralcontainers: where a pod is may be
// changed by `trusted` users only, and what it asks not at all once it has a node. So a share
// cannot be resized in place; cpu and memory can. Debug containers are let in, with a warning where
// they are privileged: they ask for nothing, and who may add one is the cluster's to say.
// On CREATE of pods/binding and of bindings, its older name: the annotations by `trusted` users
// only.
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::webhook {

struct Policy {
  std::uint64_t unit_mib = 1024;  // what aliyun.com/gpu-mem counts in this cluster: 1024 or 1
  std::string scheduler_name;     // "": pods keep theirs
  // User names that may say where a pod is: the scheduler's and the agent's, as in
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
  std::string message;                // why not, and what to write
  std::string patch;                  // RFC 6902, as JSON; "": nothing changes
  std::vector<std::string> warnings;  // what works and is odd; kubectl prints them
};

// `request` of an AdmissionReview.
AdmissionResult admit_request(const json::Value& request, const Policy& policy);

// Annotations of ours that mean nothing, with the one that may have been meant.
std::vector<std::string> annotation_warnings(const json::Value& pod);

// The whole exchange. Invalid where the text is no AdmissionReview of admission.k8s.io/v1 with a
// request; everything else is answered inside the review.
Result<std::string> review(std::string text, const Policy& policy);

}  // namespace gantry::webhook
