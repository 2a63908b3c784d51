// SPDX-License-Identifier: Apache-2.0
// The turns of one GPU: reports of processes become reports of tenants (shares), the controller
// decides, gates change. Pure: time and reports come in, gates go out through a function.
#pragma once

#include "fence/abi.h"
#include "keeper/pages.hpp"
#include "share/controller.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>

namespace gantry::keeper {

class GpuTurns {
 public:
  using SetGate = std::function<void(share::TenantId tenant, std::uint32_t word)>;
  explicit GpuTurns(SetGate set_gate, const share::Pace& pace = {})
      : controller_(pace), set_gate_(std::move(set_gate)) {}

  void add(share::TenantId tenant, const share::Rights& rights, share::Time now);
  void change(share::TenantId tenant, const share::Rights& rights, share::Time now);
  void remove(share::TenantId tenant, share::Time now);
  bool has(share::TenantId tenant) const { return tenants_.count(tenant) != 0; }
  bool empty() const { return tenants_.empty(); }

  // Events that are not about work are ignored, as are tenants that are not there.
  void report(share::TenantId tenant, std::uint32_t slot, const FenceReport& report,
              share::Time now);
  // What the process's row says: a report may have been lost where its socket was full.
  void look(share::TenantId tenant, std::uint32_t slot, const Usage& row, share::Time now);
  void gone(share::TenantId tenant, std::uint32_t slot, share::Time now);
  void charge(share::TenantId tenant, share::Time unreported, share::Time now);

  void tick(share::Time now);
  std::optional<share::Time> deadline() const { return controller_.deadline(); }
  share::Time alert_until() const { return controller_.alert_until(); }
  std::optional<share::TenantView> view(share::TenantId tenant) const {
    return controller_.view(tenant);
  }

 private:
  struct Tenant {
    std::set<std::uint32_t> busy;      // slots with work, or waiting to have some
    std::set<std::uint32_t> draining;  // those that were busy when the gate was shut
  };
  void active(share::TenantId id, Tenant& tenant, std::uint32_t slot, share::Time now);
  void idle(share::TenantId id, Tenant& tenant, std::uint32_t slot, share::Time now);
  void drained(share::TenantId id, Tenant& tenant, std::uint32_t slot, share::Time now);
  void obey();

  share::Controller controller_;
  SetGate set_gate_;
  std::map<share::TenantId, Tenant> tenants_;
};

std::uint32_t gate_word(share::GateState state);

}  // namespace gantry::keeper
