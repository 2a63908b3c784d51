// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml_child/cgroup.hpp"

#include "base/core/text.hpp"

#include <algorithm>

namespace gantry::nvml_child {
namespace {

constexpr std::size_t kIdSize = 64;
constexpr std::size_t kUidSize = 36;

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

// "pod" and a UID, at the start of a name or after a dash. Static pods have a UID of 32 digits.
std::string pod_in(std::string_view name) {
  const auto is_uid = [](char c) { return is_hex(c) || c == '-' || c == '_'; };
  for (auto at = name.find("pod"); at != std::string_view::npos; at = name.find("pod", at + 1)) {
    if (at != 0 && name[at - 1] != '-') continue;
    auto rest = name.substr(at + 3);
    const auto end = std::find_if_not(rest.begin(), rest.end(), is_uid);
    std::string uid(rest.begin(), end);
    std::replace(uid.begin(), uid.end(), '_', '-');
    if (uid.size() == kUidSize || uid.size() == kUidSize - 4) return uid;
  }
  return "";
}

// The last 64 digits of a name, before ".scope".
std::string container_in(std::string_view name) {
  if (name.ends_with(".scope")) name.remove_suffix(6);
  if (name.size() < kIdSize) return "";
  const auto id = name.substr(name.size() - kIdSize);
  const bool apart = name.size() == kIdSize || !is_hex(name[name.size() - kIdSize - 1]);
  return apart && std::all_of(id.begin(), id.end(), is_hex) ? std::string(id) : "";
}

}  // namespace

CgroupOwner parse_cgroup_owner(std::string_view text) {
  CgroupOwner owner;
  for (const auto line : lines(text)) {
    for (const auto part : split(line, '/')) {
      for (const auto name : split(part, ':')) {  // "…-podUID.slice:cri-containerd:ID"
        if (auto pod = pod_in(name); !pod.empty()) owner.pod_uid = std::move(pod);
        if (auto id = container_in(name); !id.empty()) owner.container_id = std::move(id);
      }
    }
    if (!owner.pod_uid.empty() && !owner.container_id.empty()) break;
  }
  return owner;
}

}  // namespace gantry::nvml_child
