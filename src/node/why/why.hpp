// SPDX-License-Identifier: Apache-2.0
// `gantry why`: all steps for one pod or one container, from the API server and from this node.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "cluster/explain/explanation.hpp"
#include "net/kube/api.hpp"
#include "node/why/jupyter.hpp"

#include <optional>
#include <string>

namespace gantry::why {

struct WhyOptions {
  std::string node;  // this node's name: containers can be examined only on their own node
  std::string device_plugins = "/var/lib/kubelet/device-plugins";
  std::optional<JupyterUrl> notebook;  // the URL by which a browser reaches the pod's Jupyter
};

Result<explain::Explanation> why_pod(kube::Api& api, const sys::Host& machine,
                                     const std::string& name_space, const std::string& name,
                                     const WhyOptions& options);

// Uses only this node, without the API server.
Result<explain::Explanation> why_container(const sys::Host& machine, const std::string& id);

}  // namespace gantry::why
