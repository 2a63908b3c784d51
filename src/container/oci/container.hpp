// SPDX-License-Identifier: Apache-2.0
// The parts of a container's config.json that we use, as a plain value. The rest of the document is
// never decoded.
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gantry::oci {

struct Mount {
  std::string source;
  std::string destination;
  std::vector<std::string> options{};
  bool operator==(const Mount&) const = default;
};

// The pod that a container belongs to. The fields are empty if the engine did not set them.
struct PodContainer {
  std::string uid;
  std::string container;
  bool operator==(const PodContainer&) const = default;
};

struct Container {
  std::vector<std::string> env;
  std::vector<std::pair<std::string, std::string>> annotations;
  std::vector<Mount> mounts;
  std::string root;  // root.path as in the file; relative to the bundle
  bool read_only_root = false;
  std::uint64_t uid = 0;
  // The bounding set has CAP_SYS_ADMIN for the machine, not only for a user namespace.
  bool privileged = false;
  bool can_create_nodes = false;          // the same for CAP_MKNOD
  bool user_namespace = false;            // has its own user namespace
  std::optional<PodContainer> pod;        // nullopt: does not belong to a pod
  bool has_annotations_of_image = false;  // the engine copies them, so anyone may have written them

  // The value of a variable; the last one counts if it is set twice.
  std::optional<std::string_view> variable(std::string_view name) const;
  std::string_view annotation(std::string_view key) const;  // "" if it is not set
};

// Corrupt if a value has the wrong type: runc would not accept such a config.json. `pod_cgroups`:
// names in cgroupsPath, in addition to kubepods, that mark the container of a pod.
Result<Container> parse_container(const json::Document& config,
                                  std::span<const std::string> pod_cgroups = {});

// The variable's name in "NAME=value".
std::string_view variable_name(std::string_view assignment);

}  // namespace gantry::oci
