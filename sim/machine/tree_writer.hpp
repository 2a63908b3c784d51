// SPDX-License-Identifier: Apache-2.0
// Writes files below a directory that is being built. Paths are absolute inside it; links made
// earlier are followed inside it, never by the kernel, so nothing is written elsewhere. It keeps
// the first failure and skips everything after it: callers write, and check status() once.
#pragma once

#include "base/core/result.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::sim {

enum class DeviceNodes : std::uint8_t { Auto, Real, Table };

struct DeviceNumbers {
  std::uint32_t major = 0, minor = 0;
};

class TreeWriter {
 public:
  TreeWriter(std::string root, DeviceNodes nodes) : root_(std::move(root)), nodes_(nodes) {}

  void directory(std::string_view path);
  void file(std::string_view path, std::string_view content, unsigned mode = 0444);
  void link(std::string_view path, std::string_view target);  // target as readlink shows it
  // A link as sysfs has them: relative, between two places of the tree.
  void relative_link(std::string_view path, std::string_view to);
  void device(std::string_view path, DeviceNumbers numbers, unsigned mode, unsigned uid,
              unsigned gid);
  // A bound, closed unix socket: present, and connecting is refused.
  void socket(std::string_view path);
  void remove(std::string_view path);

  // For an existing tree: reads its dev.table, or detects that its nodes are real.
  Status open_existing();

  bool has(std::string_view path) const;
  void finish();           // writes dev.table
  void fail(Error error);  // keeps the first one
  Status status() const { return status_; }
  const std::vector<std::string>& notes() const { return notes_; }
  DeviceNodes nodes() const { return nodes_; }

 private:
  // The path after following the links made so far; "" after a failure.
  std::string place(std::string_view path);
  Result<std::string> resolve(std::string_view path) const;
  bool make_parents(const std::string& inside);

  std::string root_;
  DeviceNodes nodes_;
  Status status_;
  std::map<std::string, std::string, std::less<>> links_;  // link -> resolved target, inside
  std::map<std::string, bool, std::less<>> made_;
  std::map<std::string, std::string> table_;  // path -> line of dev.table
  std::vector<std::string> notes_;
};

}  // namespace gantry::sim
