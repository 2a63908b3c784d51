// SPDX-License-Identifier: Apache-2.0
#include "gantry/refresh_cdi.hpp"

#include "base/core/printable.hpp"
#include "base/sys/shell_command.hpp"
#include "container/publish/refresh.hpp"
#include "gantry/cdi_options.hpp"
#include "gpu/probe/snapshot.hpp"
#include "node/owner_lease/lease_socket.hpp"
#include "node/owner_lease/protocol.hpp"

#include <fmt/format.h>

namespace gantry::cli {
namespace {

bool agent_runs(const sys::Host& host) {
  return owner_lease::connect(host.outside(owner_lease::kOwnerSocket)).ok();
}

// As `gantry cdi refresh` does without options.
Status refresh_by_default(const Context& context) {
  GANTRY_TRY(const auto machine, open_machine(SpecFlags{}, context));
  publish::RefreshOptions options;
  GANTRY_TRY(options.spec, spec_options(SpecFlags{}, machine));
  GANTRY_TRY(const auto done, publish::refresh(machine.host, options));
  return {};
}

}  // namespace

void refresh_cdi(const sys::Host& host, const Context& context) {
  if (!host.exists(probe::kInventoryPath) || agent_runs(host)) return;
  const auto done = refresh_by_default(context);
  // NotFound means that no GPU is left, so there is no specification to make.
  if (done.ok() || done.error().code() == Errc::NotFound) return;
  print_note(fmt::format("the CDI specification may name the wrong devices until it is made again "
                         "(`sudo gantry cdi refresh{}`): {}",
                         sys::root_flag(host), printable(done.error().text())),
             context);
}

}  // namespace gantry::cli
