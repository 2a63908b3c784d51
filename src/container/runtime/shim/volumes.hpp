// SPDX-License-Identifier: Apache-2.0
// The mount points of the engine's volumes. They are not mounted yet when the shim reads the root,
// but a symlink of the image may lead into one of them (/etc -> /data): a file that the runtime
// creates there would be created on the host.
#pragma once

#include "container/oci/container.hpp"
#include "container/rootfs/root.hpp"
#include "gpu/model/container_edits.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::runtime {

class Volumes {
 public:
  Volumes(const rootfs::Root& root, const std::vector<oci::Mount>& mounts);

  // The mount point of the volume that a path leads into; "" if there is none.
  std::string over(std::string_view path) const;

  // Removes mounts of single files whose mount points would be created in a volume because of the
  // image's symlinks, with a note for each. Denied if this happens to a directory of the driver,
  // because a container cannot use a GPU without it.
  Status remove_mounts_in_volumes(std::vector<model::MountEdit>& mounts,
                                  std::vector<std::string>& notes) const;

 private:
  struct Volume {
    std::string named;  // as in the configuration
    std::string real;   // where the image's symlinks lead
  };
  const rootfs::Root& root_;
  std::vector<Volume> volumes_;
};

}  // namespace gantry::runtime
