// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json/document.hpp"
#include "container/oci/container.hpp"
#include "container/runtime/injection/container_record.hpp"

#include <string>

namespace gantry::cli {

struct Explanation {
  bool created = false;  // true: this has happened; false: this would happen now
  std::string failure;   // why the container cannot be created as requested
  runtime::ContainerRecord record;
};

// A width of 0: lines of any length.
std::string explanation_text(const Explanation& explanation, std::size_t width = 0);
std::string explanation_json(const Explanation& explanation);

// The limitations of a flavour, one sentence each.
std::vector<std::string> flavour_limits(std::string_view flavour);

// The NVIDIA nodes and mounts in a config.json, whichever tool added them.
runtime::ContainerRecord record_from_config(const json::Document& config,
                                            const oci::Container& container);

}  // namespace gantry::cli
