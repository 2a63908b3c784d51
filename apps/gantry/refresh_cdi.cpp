// SPDX-License-Identifier: Apache-2.0
#include "gantry/refresh_cdi.hpp"

#include "base/core/printable.hpp"
#include "base/sys/shell_command.hpp"
#include "container/driver_dir/current.hpp"
#include "container/plan/capabilities.hpp"
#include "container/publish/refresh.hpp"
#include "gpu/probe/snapshot.hpp"
#include "node/owner_lease/lease_socket.hpp"
#include "node/owner_lease/protocol.hpp"

#include <fmt/format.h>

namespace gantry::cli {
namespace {

bool agent_runs(const sys::Host& host) {
  return owner_lease::connect(host.outside(owner_lease::kOwnerSocket)).ok();
}

}  // namespace

void refresh_cdi(const sys::Host& host, const Context& context) {
  if (!host.exists(probe::kInventoryPath) || agent_runs(host)) return;
  publish::RefreshOptions options;
  options.spec.capabilities = plan::specification_capabilities();
  options.spec.plan.engine_root = driver_dir::simulated_engine_root(host);
  const auto done = publish::refresh(host, options);
  // Without a GPU there is no specification. The old one names nodes that no GPU has.
  if (done.ok() || done.error().code() == Errc::NotFound) return;
  print_note(fmt::format("the CDI specification may name the wrong devices until it is made again "
                         "(`sudo gantry cdi refresh{}`): {}",
                         sys::root_flag(host), printable(done.error().text())),
             context);
}

}  // namespace gantry::cli
