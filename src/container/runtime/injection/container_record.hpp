// SPDX-License-Identifier: Apache-2.0
// What was done for one container and why: /run/gantry/containers/ID.json, and what `gantry
// explain` prints. Written when the container is created; goes when it goes.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "gpu/model/container_edits.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::runtime {

struct ContainerRecord {
  std::string id;
  std::string bundle;
  std::string state;    // the low-level runtime's directory for it: gone when the container is
  std::string flavour;  // how the loader finds the libraries
  std::vector<std::string> asked;
  std::vector<std::string> decided;  // with the rule
  std::vector<std::string> notes;    // what was asked and is not given, what was done otherwise
  model::ContainerEdits edits;
  bool operator==(const ContainerRecord&) const = default;
};

std::string to_json(const ContainerRecord& record);
Result<ContainerRecord> container_record_from_json(std::string_view text);

inline constexpr std::string_view kContainerRecords = "/run/gantry/containers";

// Replaces the container's account, and looks after a few others: those whose container has gone
// without a word (`run` deletes by itself) are removed.
Status write_container_record(const sys::Host& host, const ContainerRecord& record);
void remove_container_record(const sys::Host& host, std::string_view id);
Result<ContainerRecord> read_container_record(const sys::Host& host, std::string_view id);

}  // namespace gantry::runtime
