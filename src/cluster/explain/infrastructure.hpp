// SPDX-License-Identifier: Apache-2.0
// Pods that serve a cluster's nodes instead of computing on their GPUs: device plugins, driver
// installers, exporters, schedulers. They need no GPU of their own.
#pragma once

#include "base/json/document.hpp"

#include <string>
#include <string_view>

namespace gantry::explain {

// Why the pod is infrastructure: "it mounts /var/lib/kubelet/device-plugins"; "": it is a workload.
// `kind` is the object that creates the pod: "DaemonSet"; "" if none does.
std::string infrastructure_reason(json::Value pod, std::string_view kind);

// Whether the pod offers or prepares the GPUs of its node.
bool serves_gpus(json::Value pod);

// The kind of the object that created a pod of the API server; "" if none did.
std::string creator_kind(json::Value pod);

}  // namespace gantry::explain
