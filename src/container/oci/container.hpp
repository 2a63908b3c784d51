// SPDX-License-Identifier: Apache-2.0
// What we look at in a container's config.json, as a plain value. The rest of the document is not
// ours and is never decoded.
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
  bool operator==(const Mount&) const = default;
};

// The pod that a container belongs to. The fields are empty when the engine did not say.
struct PodContainer {
  std::string uid;
  std::string container;
  bool operator==(const PodContainer&) const = default;
};

struct Container {
  std::vector<std::string> env;
  std::vector<std::pair<std::string, std::string>> annotations;
  std::vector<Mount> mounts;
  std::string root;  // root.path as it is written; relative to the bundle
  bool read_only_root = false;
  std::uint64_t uid = 0;
  // The bounding set has CAP_SYS_ADMIN, and over the machine, not over a user namespace.
  bool privileged = false;
  bool user_namespace = false;      // one of its own
  std::optional<PodContainer> pod;  // nullopt: no pod's container

  // The value of a variable; the last one counts where it is there twice.
  std::optional<std::string_view> variable(std::string_view name) const;
  std::string_view annotation(std::string_view key) const;  // "" when it is not there
};

// Corrupt when what we read has the wrong type: then it is no config.json that runc would take.
// `pod_cgroups`: names in cgroupsPath, beside kubepods, by which a container is a pod's.
Result<Container> parse_container(const json::Document& config,
                                  std::span<const std::string> pod_cgroups = {});

// The variable's name in "NAME=value".
std::string_view variable_name(std::string_view assignment);

}  // namespace gantry::oci
