// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/machine_for_test.hpp"
#include "gpu/ownership/ownership_store.hpp"

namespace gantry::doctor {
namespace {

using enum Verdict;

const model::PciAddress changed_card{.device = 6};

void with_ledger(TestMachine& p, const ownership::OwnershipState& state) {
  p.tree.file("var/lib/gantry/ledger", ownership::to_record(state));
}

ownership::OwnershipState one_owner() {
  return {.sequence = 1, .gpus = {{.gpu = changed_card, .owner = ownership::Owner::Vm}}};
}

}  // namespace

std::vector<Case> ownership_cases() {
  return {
      {"owner.ledger", Skip, unchanged},
      {"owner.ledger", Ok, [](TestMachine& p) { with_ledger(p, one_owner()); }},
      {"owner.ledger", Fail,
       [](TestMachine& p) { p.tree.file("var/lib/gantry/ledger", "scribble\n"); }},
      {"owner.unfinished", Skip, unchanged},
      {"owner.unfinished", Skip,
       [](TestMachine& p) { p.tree.file("var/lib/gantry/ledger", "scribble\n"); }},
      {"owner.unfinished", Ok, [](TestMachine& p) { with_ledger(p, one_owner()); }},
      {"owner.unfinished", Fail,
       [](TestMachine& p) {
         auto state = one_owner();
         state.intents.push_back({.gpu = changed_card,
                                  .to = ownership::Owner::Plugin,
                                  .what = "gantry gpu reset 0000:00:06.0",
                                  .pid = 4711});
         with_ledger(p, state);
       }},
      {"owner.driver", Skip, unchanged},
      {"owner.driver", Skip,
       [](TestMachine& p) {
         auto state = one_owner();
         state.gpus.front().owner = ownership::Owner::Plugin;
         with_ledger(p, state);
       }},
      {"owner.driver", Warn,
       [](TestMachine& p) {
         p.tree.link("sys/bus/pci/devices/0000:00:06.0/driver", "../../drivers/nvidia");
         with_ledger(p, one_owner());
       }},
      {"owner.driver", Ok,
       [](TestMachine& p) {
         p.tree.link("sys/bus/pci/devices/0000:00:06.0/driver", "../../drivers/vfio-pci");
         with_ledger(p, one_owner());
       }},
  };
}

}  // namespace gantry::doctor
