// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json/document.hpp"
#include "cluster/admission/admission.hpp"
#include "cluster/admission/edits_internal.hpp"
#include "cluster/podspec/request.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::admission {

// A container of the pod and its position.
struct ContainerRef {
  std::string_view list;  // "initContainers" or "containers"
  std::size_t number = 0;
  json::Value container;
  json::Path path() const { return {"spec", list, number}; }
  std::string name() const;  // safe to print
};
std::vector<ContainerRef> containers_of(const json::Value& pod);

bool is_gpu_resource(std::string_view name);  // read by podspec::parse_request or by the webhook
bool has_gpu_resources(const json::Value& pod);

// The state of one pod during admission.
struct PodDraft {
  PodEdits edits;
  std::vector<std::string> warnings;
};

// Replaces old names, and adds defaults and slots. Invalid if the old and the new name of a
// resource have different values.
Status fill_resources(const json::Value& pod, const Policy& policy, PodDraft& draft);

// Removes hostPath volumes with the driver's files, and their mounts.
void remove_driver_volumes(const json::Value& pod, PodDraft& draft);
bool is_driver_path(std::string_view path);

// Adds warnings about settings that work but are unusual.
void add_warnings(const json::Value& pod, const podspec::PodRequest& ask,
                  std::vector<std::string>& warnings);

}  // namespace gantry::admission
