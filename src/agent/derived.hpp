// SPDX-License-Identifier: Apache-2.0
// What follows from the options.
#pragma once

#include "health/health.hpp"
#include "offer/options.hpp"

#include <string>

namespace gantry::agent {

bool is_gke(const offer::Options& options);  // called by the name of GKE's plugin
std::string directory_of(const std::string& path);
std::string plugin_directory(const offer::Options& options);  // the kubelet's, for device plugins
health::HealthOptions health_options(const offer::Options& options);

}  // namespace gantry::agent
