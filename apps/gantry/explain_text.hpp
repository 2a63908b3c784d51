// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json/document.hpp"
#include "container/oci/container.hpp"
#include "container/runtime/injection/container_record.hpp"

#include <string>

namespace gantry::cli {

struct Explanation {
  bool created = false;  // it has happened; otherwise it is what would happen now
  std::string failure;   // why the container cannot be created as asked
  runtime::ContainerRecord record;
};

std::string explanation_text(const Explanation& explanation);
std::string explanation_json(const Explanation& explanation);

// What a flavour cannot do, one sentence each.
std::vector<std::string> flavour_limits(std::string_view flavour);

// NVIDIA's nodes and mounts that a config.json has, whoever put them there.
runtime::ContainerRecord record_from_config(const json::Document& config,
                                            const oci::Container& container);

}  // namespace gantry::cli
