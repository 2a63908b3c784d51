// SPDX-License-Identifier: Apache-2.0
// Values that are computed from the options.
#pragma once

#include "gpu/health/health.hpp"
#include "node/options/options.hpp"

#include <string>

namespace gantry::agent {

bool is_gke(
    const options::Options& options);  // whether the program was called by the name of GKE's plugin
std::string plugin_directory(
    const options::Options& options);  // the kubelet's directory for device plugins
health::HealthOptions health_options(const options::Options& options);

}  // namespace gantry::agent
