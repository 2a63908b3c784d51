// SPDX-License-Identifier: Apache-2.0
// Which of some device nodes a process uses, by an open descriptor or by a mapping: a mapping keeps
// the device in use after its descriptor was closed.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::device_users {

struct UsedNode {
  std::string path;
  unsigned opens = 0;  // open descriptors; a mapping counts if no descriptor is open
  bool operator==(const UsedNode&) const = default;
};

// A container or a chroot may have a node under another path, so on the machine itself the device
// number decides. In a tree of files only the path can.
class NodeSearch {
 public:
  // The host must outlive the search.
  NodeSearch(const sys::Host& host, std::span<const std::string> nodes);

  // Each node once. Empty if the process has ended, or is a thread of the kernel. Denied if its
  // descriptors or its mappings cannot be read.
  Result<std::vector<std::string>> used_by(std::uint32_t pid) const;
  Result<std::vector<UsedNode>> uses_of(std::uint32_t pid) const;  // the same, with how often

 private:
  struct SearchedNode {
    std::string path;
    std::optional<dev_t> number;  // nullopt: only its path is known
  };
  // The node at `path`, which `file` below /proc shows; nullptr if it is not one of ours.
  const SearchedNode* find(std::string_view path, const std::string& file) const;
  Result<std::vector<UsedNode>> read_uses(std::uint32_t pid) const;
  Status add_mapped(std::uint32_t pid, std::vector<UsedNode>& found) const;

  const sys::Host& host_;
  std::vector<SearchedNode> nodes_;
};

}  // namespace gantry::device_users
