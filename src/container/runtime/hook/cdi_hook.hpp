// SPDX-License-Identifier: Apache-2.0
// nvidia-cdi-hook: the hooks that CDI specs of Gantry and of NVIDIA's tools call to change files in
// a container. Each hook is one row of a table; it works on the container's root only through
// descriptors (src/container/rootfs) and executes nothing.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "container/oci/container.hpp"
#include "container/rootfs/root.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gantry::runtime {

struct HookArguments {
  std::vector<std::pair<std::string, std::string>> flags;  // "folder" -> "/usr/lib", in order

  std::vector<std::string> all(std::string_view name) const;
  std::string last(std::string_view name, std::string_view otherwise = "") const;
};

// The container that a hook works on. Collects notes for the user; the caller prints them.
struct HookContext {
  const rootfs::Root& container;
  const sys::Host& host;
  std::string bundle;
  std::uint64_t pid = 0;  // the container's first process
  std::vector<std::string> warnings;

  Result<oci::Container> config() const;  // of the bundle, for hooks that need more than the root
};

struct CdiHook {
  std::string_view name;
  std::vector<std::string_view> flags;  // each takes a value
  Status (*run)(const HookArguments& arguments, HookContext& place);
};

const std::vector<CdiHook>& cdi_hooks();

// The hooks, grouped by source file.
Status create_symlinks(const HookArguments& arguments, HookContext& place);
Status change_mode(const HookArguments& arguments, HookContext& place);
Status update_ldcache(const HookArguments& arguments, HookContext& place);
Status enable_cuda_compat(const HookArguments& arguments, HookContext& place);
Status disable_device_node_modification(const HookArguments& arguments, HookContext& place);
Status update_application_profile(const HookArguments& arguments, HookContext& place);
Status put_fence(const HookArguments& arguments, HookContext& place);

// `words` are the arguments without the program's name. Returns 0 on success, and for an unknown
// hook, so that newer specs work with older installations; 1 on failure, with the reason on stderr.
// Reads the state from stdin unless --container-spec names a file.
int run_cdi_hook(const std::vector<std::string_view>& words);

}  // namespace gantry::runtime
