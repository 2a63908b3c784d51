// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json/document.hpp"
#include "cluster/podspec/request.hpp"
#include "cluster/webhook/admission.hpp"
#include "cluster/webhook/edits_internal.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::webhook {

// A container of the pod and where it stands.
struct ContainerRef {
  std::string_view list;  // "initContainers" or "containers"
  std::size_t number = 0;
  json::Value container;
  json::Path path() const { return {"spec", list, number}; }
  std::string name() const;  // fit to be shown
};
std::vector<ContainerRef> containers_of(const json::Value& pod);

bool is_gpu_resource(std::string_view name);  // one of those that podspec::parse_request or we read
bool has_gpu_resources(const json::Value& pod);

// Of one pod, as it is judged.
struct PodDraft {
  PodEdits edits;
  std::vector<std::string> warnings;
};

// Older names, defaults, slots. Invalid where two names of one thing contradict each other.
Status fill_resources(const json::Value& pod, const Policy& policy, PodDraft& draft);

// hostPath volumes with the driver's files, and their mounts.
void remove_driver_volumes(const json::Value& pod, PodDraft& draft);
bool is_driver_path(std::string_view path);

// What works and is odd.
void add_warnings(const json::Value& pod, const podspec::PodRequest& ask,
                  std::vector<std::string>& warnings);

}  // namespace gantry::webhook
