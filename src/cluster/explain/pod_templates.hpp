// SPDX-License-Identifier: Apache-2.0
// The pods that an object of the API stands for: a Pod itself, and every pod template of a
// Deployment, a CronJob, a TFJob, a RayCluster or a kind that Gantry has never heard of.
#pragma once

#include "base/json/document.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace gantry::explain {

struct PodTemplate {
  std::string path;    // "spec.workerGroupSpecs[0].template"; "" for a Pod
  json::Document pod;  // with metadata, if the template has some, and spec.containers
};

// At most `most` templates; objects that only describe others, such as a CustomResourceDefinition,
// have none.
std::vector<PodTemplate> pod_templates(json::Value object, std::size_t most);

}  // namespace gantry::explain
