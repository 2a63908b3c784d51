// SPDX-License-Identifier: Apache-2.0
// The engine's volumes. They are not mounted yet when the shim reads the root, but a mount of ours
// may lead into one of them: by a symlink of the image (/etc -> /data), or because the volume is
// mounted over /etc itself. A mount point that the runtime creates there is created on the host.
// In a root that cannot be written, the runtime cannot create mount points at all.
#pragma once

#include "container/oci/container.hpp"
#include "container/rootfs/root.hpp"
#include "gpu/model/container_edits.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::runtime {

class Volumes {
 public:
  // `bundle`: the directory to which relative sources belong.
  Volumes(const rootfs::Root& root, const std::vector<oci::Mount>& mounts,
          std::string_view bundle = "/");

  // The mount point of the volume that a path leads into; "" if there is none.
  std::string over(std::string_view path) const;

  struct VolumeNotes {
    std::vector<std::string> notes, warnings;
  };
  // Removes mounts whose mount points would be created in a volume, with a note for each, and
  // mounts that a volume with shared propagation would show to the host. Removes mounts without a
  // mount point in a root that cannot be written, with a warning. Denied if a directory of the
  // driver's libraries can be mounted nowhere else, because a container cannot use a GPU without
  // it.
  Status remove_impossible_mounts(std::vector<model::MountEdit>& mounts,
                                  VolumeNotes& remarks) const;

 private:
  struct Volume {
    std::string named;  // the mount point as in the configuration
    std::string real;   // where it is mounted, once the symlinks are followed
    std::string source;
    bool shared = false;                  // mounts in it appear on the host
    std::optional<rootfs::Root> content;  // nullopt: not a directory
  };
  const Volume* volume_of(std::string_view real) const;
  std::string real_path(std::string_view path) const;
  Result<sys::FileInfo> link_info(const std::string& real) const;
  struct Refusal {
    std::string why;      // "": the mount is possible
    std::string missing;  // the directory on the host that would make it possible; "" if none would
    std::string image_lacks;  // the path that the read-only root lacks; "" if it lacks none
  };
  struct RefusedMount {
    model::MountEdit mount;
    Refusal refusal;
  };
  Refusal refusal(const model::MountEdit& mount) const;
  Refusal refusal_by_root(const model::MountEdit& mount, const std::string& real) const;
  static std::string remedy(const std::vector<RefusedMount>& directories);

  const rootfs::Root& root_;
  bool read_only_root_ = false;
  std::vector<std::string> other_mounts_;  // where the runtime mounts proc, tmpfs and similar
  std::vector<Volume> volumes_;            // in the order in which the runtime mounts them
};

}  // namespace gantry::runtime
