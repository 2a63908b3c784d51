// SPDX-License-Identifier: Apache-2.0
// The record of what was done for one container and why: /run/gantry/containers/ID.json, printed by
// `gantry explain`. Written when the container is created, removed when it is deleted.
#pragma once

#include "base/core/result.hpp"
#include "base/json/writer.hpp"
#include "base/sys/host.hpp"
#include "gpu/model/container_edits.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::runtime {

struct ContainerRecord {
  std::string id;
  std::string bundle;
  std::string state;    // the low-level runtime's directory, which ends with the container
  std::string flavour;  // how the loader finds the libraries
  std::vector<std::string> asked;
  std::vector<std::string> decided;  // each decision with its rule
  std::vector<std::string> notes;    // what was not granted, and what was done differently
  model::ContainerEdits edits;
  bool operator==(const ContainerRecord&) const = default;
};

std::string to_json(const ContainerRecord& record);
void write_members(json::Writer& out, const ContainerRecord& record);  // inside an object
Result<ContainerRecord> container_record_from_json(std::string_view text);

inline constexpr std::string_view kContainerRecords = "/run/gantry/containers";

// Replaces the container's record. Also checks a few other records and removes those whose
// container no longer exists, because `run` deletes containers without calling us.
Status write_container_record(const sys::Host& host, const ContainerRecord& record);
void remove_container_record(const sys::Host& host, std::string_view id);
Result<ContainerRecord> read_container_record(const sys::Host& host, std::string_view id);

}  // namespace gantry::runtime
