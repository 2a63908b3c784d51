// SPDX-License-Identifier: Apache-2.0
// Collects the files of a machine that help to find a fault: configuration, logs, state. Never
// kubeconfigs, keys or tokens.
#pragma once

#include "base/sys/host.hpp"
#include "base/tar/tar.hpp"

#include <string>
#include <vector>

namespace gantry::doctor {

struct CollectedFiles {
  std::vector<tar::ArchiveFile> files;  // the names are the paths on the machine
  std::vector<std::string> notes;       // what was left out and why, one line each
  bool denied = false;                  // some file may be read by root only
};

// At most kMostFiles files and kMaxArchiveBytes bytes; only the end of a file that is too long.
// Secrets are removed from the content.
CollectedFiles collect_files(const sys::Host& host);

inline constexpr std::size_t kMostFiles = 1000;
inline constexpr std::size_t kMaxArchiveBytes = std::size_t{32} << 20;
inline constexpr std::size_t kMostFileBytes = std::size_t{1} << 20;

}  // namespace gantry::doctor
