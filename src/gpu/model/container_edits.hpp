// SPDX-License-Identifier: Apache-2.0
// Everything that reaches a container, as one plain value. The CDI spec, the edit of config.json,
// the classic mounts, the kubelet's AllocateResponse and `gantry explain` are all written from it,
// so a new driver file is one change in one place (src/container/plan).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gantry::model {

struct DeviceNodeEdit {
  std::string path;       // in the container
  std::string host_path;  // on the host, as the engine sees it
  // Known only while a container starts and never stored: the majors of nvidia-uvm and nvidia-caps
  // change at every boot.
  std::optional<std::uint32_t> major;
  std::optional<std::uint32_t> minor;
  std::optional<std::uint32_t> mode;
  std::optional<std::uint32_t> gid;
  std::string permissions =
      "rw";  // never "m": with mknod a tenant could create the node of another tenant's GPU
  std::string why;
  std::string type;  // "c" or "b"; "" = as the host has it
  std::optional<std::uint32_t> uid;
  bool operator==(const DeviceNodeEdit&) const = default;
};

struct MountEdit {
  std::string host_path;
  std::string container_path;
  std::vector<std::string> options{"ro", "nosuid", "nodev", "rbind", "rprivate"};
  std::string why;
  std::string type;  // "" = bind; CDI specifications of others may have another type
  bool operator==(const MountEdit&) const = default;
};

struct HookEdit {
  std::string stage;  // "createContainer"
  std::string path;
  std::vector<std::string> args;  // args[0] is the program's own name
  std::vector<std::string>
      env;  // never empty: without it the runtime would use the image's environment
  std::string why;
  std::optional<std::int64_t> timeout;  // seconds
  bool operator==(const HookEdit&) const = default;
};

// A library that the container's loader must find by name. Only flavours that merge the image's
// ld.so.cache use these; the others mount into directories that the loader searches.
struct LibraryEdit {
  std::string name;  // "libcuda.so.1"
  std::string path;  // in the container: "/usr/local/nvidia/lib64/libcuda.so.1"
  bool is_32bit = false;
  bool operator==(const LibraryEdit&) const = default;
};

// A small file inside the container's root, written before the container starts. CDI cannot express
// this; the shim, the hook and the classic chain can.
struct FileEdit {
  std::string path;
  std::string content;
  std::uint32_t mode = 0644;
  std::string why;
  bool operator==(const FileEdit&) const = default;
};

struct ContainerEdits {
  std::vector<DeviceNodeEdit> nodes;
  std::vector<MountEdit> mounts;
  std::vector<std::string> env;  // "NAME=value"
  std::vector<HookEdit> hooks;
  std::vector<LibraryEdit> libraries;
  std::vector<FileEdit> files;
  std::vector<std::uint32_t> additional_gids;
  std::vector<std::string> notes;  // requests that were not fulfilled, one sentence each
  bool operator==(const ContainerEdits&) const = default;

  bool empty() const {
    return nodes.empty() && mounts.empty() && env.empty() && hooks.empty() && libraries.empty() &&
           files.empty() && additional_gids.empty();
  }
};

}  // namespace gantry::model
