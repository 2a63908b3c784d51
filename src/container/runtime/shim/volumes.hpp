// SPDX-License-Identifier: Apache-2.0
// Where the engine's volumes will lie once a container runs. They are not mounted yet when the shim
// looks at the root, but an image's symlink may lead into one of them (/etc -> /data): what a
// runtime makes there then is made on the host.
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

  // Where the volume is mounted that a path leads into; "" when it leads into none.
  std::string over(std::string_view path) const;

  // ValueKind out the single files whose mount points would be made in a volume because of the
  // image's symlinks, with a note each. Denied when that is true of a directory of the driver's:
  // there is no container with a GPU without it.
  Status remove_mounts_in_volumes(std::vector<model::MountEdit>& mounts,
                                  std::vector<std::string>& notes) const;

 private:
  struct Volume {
    std::string named;  // as the configuration has it
    std::string real;   // where the image's symlinks lead
  };
  const rootfs::Root& root_;
  std::vector<Volume> volumes_;
};

}  // namespace gantry::runtime
