// SPDX-License-Identifier: Apache-2.0
#include "container/cdi/transform.hpp"

#include <algorithm>

namespace gantry::cdi {
namespace {

std::string without_trailing_slash(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

class Prefix {
 public:
  explicit Prefix(const RootChange& change)
      : from_(without_trailing_slash(change.from)), to_(without_trailing_slash(change.to)) {}

  std::string replaced(const std::string& path) const {
    if (!path.starts_with('/') || !from_.starts_with('/') || !path.starts_with(from_)) return path;
    const auto rest = from_ == "/" ? path : path.substr(from_.size());
    if (!rest.empty() && !rest.starts_with('/')) return path;  // /usrlocal is not below /usr
    if (to_ == "/" || to_.empty()) return rest.empty() ? "/" : rest;
    return rest == "/" ? to_ : to_ + rest;
  }

  // In "a::b" (a link and its target, for example) both parts are paths.
  std::string replaced_in_argument(const std::string& argument) const {
    const auto colons = argument.find("::");
    if (colons == std::string::npos) return replaced(argument);
    return replaced(argument.substr(0, colons)) + "::" + replaced(argument.substr(colons + 2));
  }

 private:
  std::string from_;
  std::string to_;
};

bool runs_inside(const Hook& hook) {
  return hook.hook_name == "createContainer" || hook.hook_name == "startContainer";
}

void change_host(Edits& edits, const Prefix& prefix) {
  for (auto& node : edits.device_nodes) {
    const auto before = node.host_path.empty() ? node.path : node.host_path;
    node.host_path = prefix.replaced(before);
    if (node.host_path == node.path) node.host_path.clear();
  }
  for (auto& mount : edits.mounts) mount.host_path = prefix.replaced(mount.host_path);
  for (auto& hook : edits.hooks) hook.path = prefix.replaced(hook.path);
}

void change_container(Edits& edits, const Prefix& prefix) {
  for (auto& node : edits.device_nodes) {
    if (node.host_path.empty()) node.host_path = node.path;  // the host's node keeps its path
    node.path = prefix.replaced(node.path);
    if (node.host_path == node.path) node.host_path.clear();
  }
  for (auto& mount : edits.mounts) mount.container_path = prefix.replaced(mount.container_path);
}

}  // namespace

void transform_root(Spec& spec, const RootChange& change) {
  const Prefix prefix(change);
  for_each_edits(spec, [&](Edits& edits) {
    if (change.side == PathSide::Host) {
      change_host(edits, prefix);
    } else {
      change_container(edits, prefix);
    }
    for (auto& hook : edits.hooks) {
      if (runs_inside(hook) != (change.side == PathSide::Container)) continue;
      for (auto& argument : hook.args) argument = prefix.replaced_in_argument(argument);
    }
  });
}

}  // namespace gantry::cdi
