// SPDX-License-Identifier: Apache-2.0
// `gantry why`: the whole chain of one pod or one container, asked of the API server and of this
// node.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "net/kube/api.hpp"
#include "node/why/explanation.hpp"

#include <string>

namespace gantry::why {

struct WhyOptions {
  std::string node;  // this node's name: links inside a container can be looked at here only
  std::string device_plugins = "/var/lib/kubelet/device-plugins";
};

Result<Explanation> why_pod(kube::Api& api, const sys::Host& machine, const std::string& name_space,
                            const std::string& name, const WhyOptions& options);

// Only what this node shows; no API server is asked.
Result<Explanation> why_container(const sys::Host& machine, const std::string& id);

}  // namespace gantry::why
