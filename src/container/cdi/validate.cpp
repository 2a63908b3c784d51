// SPDX-License-Identifier: Apache-2.0
#include "container/cdi/validate.hpp"

#include "base/core/text.hpp"
#include "container/cdi/names.hpp"
#include "container/cdi/version.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

namespace gantry::cdi {
namespace {

constexpr std::array<std::string_view, 6> kHookNames{
    "prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"};

class Validator {
 public:
  void check(const Spec& spec) {
    check_version(spec);
    note(check_kind(spec.kind));
    place_ = "annotations";
    check(spec.annotations);
    place_ = "containerEdits";
    check(spec.edits);
    std::set<std::string> names;
    for (const auto& device : spec.devices) {
      place_ = fmt::format("device \"{}\"", device.name);
      if (!names.insert(device.name).second) say("is defined twice");
      check(device);
    }
    place_.clear();
    if (spec.devices.empty()) say("there is no device: engines refuse such a file");
  }

  std::vector<std::string> problems;

 private:
  void say(std::string_view what) {
    problems.push_back(place_.empty() ? std::string(what) : fmt::format("{} {}", place_, what));
  }
  void note(const Status& status) {
    if (!status.ok()) problems.push_back(status.error().text());
  }

  void check_version(const Spec& spec) {
    const auto version = parse_version(spec.version);
    if (spec.version.empty()) {
      say("there is no cdiVersion");
    } else if (!version.ok() || spec.version.size() < 5) {
      say(fmt::format("cdiVersion {}", version.ok() ? fmt::format("\"{}\" must be written {}",
                                                                  spec.version, to_string(*version))
                                                    : version.error().text()));
    } else {
      for (const auto& need : version_requirements(spec)) {
        if (need.version <= *version) continue;
        say(fmt::format("cdiVersion {} is too low: {} needs {}", spec.version, need.what,
                        to_string(need.version)));
      }
    }
  }

  // Like in Kubernetes: an optional DNS prefix and a name of at most 63 characters.
  void check(const Annotations& annotations) {
    std::size_t total = 0;
    for (const auto& [key, value] : annotations) {
      total += key.size() + value.size();
      const auto slash = key.find('/');
      const auto name = slash == std::string::npos ? key : key.substr(slash + 1);
      if (name.size() > 63 || !check_device_name(name).ok() || contains(name, ":")) {
        say(fmt::format("annotation \"{}\" is not a valid name", key));
      }
    }
    if (total > std::size_t{256} * 1024) say("annotations are larger than 256 KiB");
  }

  void check(const Device& device) {
    note(check_device_name(device.name));
    check(device.annotations);
    if (device.edits.empty()) say("has no edits: engines refuse the file");
    check(device.edits);
  }

  void check_env(const std::vector<std::string>& env, std::string_view whose) {
    for (const auto& variable : env) {
      const auto equals = variable.find('=');
      if (equals == std::string::npos || equals == 0)
        say(fmt::format("{}env \"{}\" must be NAME=VALUE", whose, variable));
    }
  }

  void check(const Edits& edits) {
    check_env(edits.env, "");
    for (const auto& node : edits.device_nodes) check(node);
    for (const auto& hook : edits.hooks) check(hook);
    for (const auto& mount : edits.mounts) {
      if (mount.host_path.empty())
        say(fmt::format("mount at \"{}\" has no hostPath", mount.container_path));
      if (mount.container_path.empty())
        say(fmt::format("mount of \"{}\" has no containerPath", mount.host_path));
    }
    check(edits.net_devices);
    if (edits.intel_rdt) check(*edits.intel_rdt);
  }

  void check(const DeviceNode& node) {
    if (node.path.empty()) say("has a device node without path");
    if (!node.type.empty() && (node.type.size() != 1 || !contains("bcup", node.type))) {
      say(fmt::format("{}: type \"{}\" must be b, c, u or p", node.path, node.type));
    }
    if (node.permissions.find_first_not_of("rwm") != std::string::npos) {
      say(fmt::format("{}: permissions \"{}\" may contain only r, w and m", node.path,
                      node.permissions));
    }
  }

  void check(const Hook& hook) {
    if (std::find(kHookNames.begin(), kHookNames.end(), hook.hook_name) == kHookNames.end()) {
      say(fmt::format("hookName \"{}\" must be one of {}", hook.hook_name,
                      fmt::join(kHookNames, ", ")));
    }
    if (hook.path.empty()) say(fmt::format("hook {} has no path", hook.hook_name));
    check_env(hook.env, fmt::format("hook {}: ", hook.path));
  }

  void check(const std::vector<NetDevice>& devices) {
    std::set<std::string> hosts;
    std::set<std::string> names;
    for (const auto& device : devices) {
      if (device.host_interface_name.empty()) say("has a net device without hostInterfaceName");
      if (device.name.empty()) say("has a net device without name");
      if (!hosts.insert(device.host_interface_name).second || !names.insert(device.name).second) {
        say(fmt::format("net device {} ({}) is defined twice", device.host_interface_name,
                        device.name));
      }
    }
  }

  void check(const IntelRdt& rdt) {
    const auto& id = rdt.clos_id;
    if (id == "/") return;
    if (id.size() >= 4096 || id == "." || id == ".." ||
        id.find_first_of("/\n") != std::string::npos) {
      say(fmt::format("intelRdt: closID \"{}\" must be a file name", id));
    }
  }

  std::string place_;
};

}  // namespace

std::vector<std::string> validate(const Spec& spec) {
  Validator validator;
  validator.check(spec);
  return std::move(validator.problems);
}

}  // namespace gantry::cdi
