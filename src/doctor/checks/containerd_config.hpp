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
  std::string error;  // why it cannot be parsed; "" if it can
};

struct Containerd {
  bool installed = false;
  std::vector<ContainerdFile> files;  // the main file first, then its imports
  int version = 0;                    // of the main file; 0: there is no main file
  bool cri_disabled = false;
  bool has_nvidia = false;
  std::string nvidia_binary;    // options.BinaryName of that runtime
  std::string default_runtime;  // "" if not set
  bool cdi = false;             // enabled, or on by default (version 3)
  std::string systemd_cgroup;   // of the default or runc runtime: "true", "false", ""
  std::string wrong_key;        // a plugin name of another configuration version
};

Containerd read_containerd(const Facts& facts);

}  // namespace gantry::doctor
