// SPDX-License-Identifier: Apache-2.0
// containerd's configuration files, in their three versions.
#pragma once

#include "doctor/engine/document.hpp"
#include "doctor/engine/facts.hpp"

#include <string>
#include <vector>

namespace gantry::doctor {

struct ContainerdFile {
  std::string path;
  Document document;
  std::string error;  // "" when it could be parsed
};

struct Containerd {
  bool installed = false;
  std::vector<ContainerdFile> files;  // the main one first, then what it imports
  int version = 0;                    // of the main file; 0: none there
  bool cri_disabled = false;
  bool has_nvidia = false;
  std::string nvidia_binary;    // options.BinaryName of that runtime
  std::string default_runtime;  // "" when not set
  bool cdi = false;             // switched on, or on by default (version 3)
  std::string systemd_cgroup;   // of the default or runc runtime: "true", "false", ""
  std::string wrong_key;        // a plugin's name that belongs to another version
};

Containerd read_containerd(const Facts& facts);

}  // namespace gantry::doctor
