// SPDX-License-Identifier: Apache-2.0
// gantry vfio list: which GPUs can be passed through, and why the others cannot.
// gantry vfio status: what Gantry has bound, and what did not end.
#include "base/core/printable.hpp"
#include "base/json/writer.hpp"
#include "base/sys/shell_command.hpp"
#include "gantry/table.hpp"
#include "gantry/vfio_commands.hpp"
#include "gpu/ownership/ownership_store.hpp"
#include "vm/vfio/persist.hpp"
#include "vm/vfio/plan_json.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace gantry::cli {
namespace {

struct GpuRow {
  const pci::Function* function;
  vfio::Plan plan;
  std::vector<vfio::Holder> holders;  // also of a GPU that is bound: the virtual machine
  std::string owner;                  // "plugin", "vm"; "" if it is not recorded
};

// Only root may read the ledger; without it the owners are unknown.
std::string owner_of(const Result<ownership::OwnershipState>& ledger,
                     const model::PciAddress& address) {
  const auto* known = ledger.ok() ? ledger->find(address) : nullptr;
  return known == nullptr ? "" : std::string(to_string(known->owner));
}

std::vector<GpuRow> gpu_rows(const sys::Host& host, const vfio::MachineState& state) {
  const auto ledger = ownership::OwnershipStore::peek(host);
  std::vector<GpuRow> rows;
  for (const auto& function : state.bus.functions) {
    if (!function.is_gpu() && !function.is_nvswitch()) continue;
    if (function.physfn) continue;  // a virtual function is a vGPU's: `gantry vgpu list` shows it
    GpuRow row{.function = &function,
               .plan = vfio::plan_passthrough(state, {.targets = {function.address}}),
               .holders = {},
               .owner = owner_of(ledger, function.address)};
    const auto nodes = vfio::device_nodes(state, function);
    for (const auto& holder : state.holders) {
      const bool holds = std::find(nodes.begin(), nodes.end(), holder.node) != nodes.end();
      const bool known = !row.holders.empty() && row.holders.back().pid == holder.pid;
      if (holds && !known) row.holders.push_back(holder);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string holders_cell(const std::vector<vfio::Holder>& holders) {
  if (holders.empty()) return "-";
  const auto& first = holders.front();
  auto text = first.pod.empty() ? fmt::format("pid {} ({})", first.pid, printable(first.name))
                                : fmt::format("pod {}", first.pod);
  if (holders.size() > 1) text += fmt::format(" and {} more", holders.size() - 1);
  return text;
}

std::string members_cell(const vfio::MachineState& state, const pci::Function& function) {
  if (!function.iommu_group) return "-";
  const auto* group = state.bus.group(*function.iommu_group);
  std::string text;
  for (const auto& member : group == nullptr ? std::vector<model::PciAddress>{} : group->members) {
    if (member != function.address) text += (text.empty() ? "" : " ") + member.sysfs();
  }
  return text.empty() ? "-" : text;
}

std::string verdict(const GpuRow& row) {
  if (row.plan.complete()) return "bound";
  for (const auto& finding : row.plan.findings) {
    if (finding.severity != vfio::Severity::Warning) return "no: " + finding.text;
  }
  return "yes";
}

std::string list_table(const vfio::MachineState& state, const std::vector<GpuRow>& rows,
                       std::size_t width) {
  Table table({"GPU", "ID", "DRIVER", "GROUP", "ALSO IN GROUP", "OWNER", "HELD BY", "PASSTHROUGH"});
  for (const auto& row : rows) {
    const auto& f = *row.function;
    table.add({f.address.sysfs(), fmt::format("{:04x}:{:04x}", f.id.vendor, f.id.device),
               f.driver.empty() ? "-" : f.driver,
               f.iommu_group ? fmt::to_string(*f.iommu_group) : "-", members_cell(state, f),
               row.owner.empty() ? "-" : row.owner, holders_cell(row.holders), verdict(row)});
  }
  return table.text(width);
}

std::string list_json(const sys::Host& host, const vfio::MachineState& state,
                      const std::vector<GpuRow>& rows) {
  json::Writer out(json::Layout::Indented);
  out.object([&] {
    out.member("schema", kFirstSchema);
    out.array("gpus", rows, [&](const GpuRow& row) {
      const auto& f = *row.function;
      const auto* known = state.driver_gpu(f.address);
      out.object([&] {
        out.member("address", f.address.sysfs());
        out.member("kind", pci::to_string(f.kind()));
        out.member("uuid", known == nullptr ? "" : known->uuid.text);
        out.member("driver", f.driver);
        out.member("owner", row.owner);
        out.member("iommuGroup", f.iommu_group);
        out.member("numaNode", f.numa_node);
        out.member("barBytes", f.bar_bytes());
        out.array("resetMethods", f.reset_methods);
        out.array("holders", row.holders, [&](const auto& one) { vfio::write_holder(out, one); });
        out.key("plan");
        vfio::write_plan(out, for_machine(row.plan, host));
      });
    });
  });
  return std::move(out).text() + "\n";
}

void note_hidden_processes(const sys::Host& host, const Context& context) {
  if (host.is_live() && ::geteuid() != 0) {
    print_note("only root sees the processes of other users: sudo gantry vfio list", context);
  }
}

Result<int> list_for_vfio(Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  GANTRY_TRY(const auto state, vfio::read_machine_state(host));
  const auto rows = gpu_rows(host, state);
  if (context.json) {
    fmt::print(context.out, "{}", list_json(host, state, rows));
  } else if (rows.empty()) {
    fmt::print(context.out, "No GPU.\n");
  } else {
    fmt::print(context.out, "{}", printable_lines(list_table(state, rows, context.columns)));
  }
  for (const auto& note : state.bus.notes) print_note(printable(note), context);
  note_hidden_processes(host, context);
  return rows.empty() ? kProblem : kOk;
}

struct VfioStatus {
  std::vector<vfio::Journal> journals;
  std::vector<vfio::Journal> bound;
  vfio::PersistedState persisted;
};

std::string status_json(const VfioStatus& status) {
  const auto addresses = [](json::Writer& out, std::string_view name, const auto& all) {
    out.array(name, all, [&](const model::PciAddress& one) { out.value(one.sysfs()); });
  };
  json::Writer out(json::Layout::Indented);
  out.object([&] {
    out.member("schema", kFirstSchema);
    out.array("bound", status.bound, [&](const vfio::Journal& record) {
      out.object([&] {
        out.member("gpu", record.targets.front().sysfs());
        out.array("functions", record.moves, [&](const vfio::FunctionMove& move) {
          out.object([&] {
            out.member("address", move.address.sysfs());
            out.member("driver", move.to_driver);
            out.member("formerDriver", move.from_driver);
          });
        });
      });
    });
    out.array("unfinished", status.journals, [&](const vfio::Journal& journal) {
      out.object([&] {
        out.member("kind", journal.kind);
        addresses(out, "gpus", journal.targets);
        addresses(out, "stuck", journal.stuck);
      });
    });
    out.array("persisted", status.persisted.cards, [&](const vfio::PersistedCard& card) {
      out.object([&] {
        out.member("address", card.address.sysfs());
        out.member("card", pci::to_string(card.id));
      });
    });
  });
  return std::move(out).text() + "\n";
}

std::string status_text(const VfioStatus& status) {
  std::string text;
  for (const auto& record : status.bound) {
    text += fmt::format("{} is bound for virtual machines:\n", record.targets.front().sysfs());
    for (const auto& move : record.moves) {
      text += fmt::format("  {}  {}, before {}\n", move.address.sysfs(), move.to_driver,
                          move.from_driver.empty() ? "no driver" : move.from_driver);
    }
  }
  for (const auto& card : status.persisted.cards) {
    text += fmt::format("{} is bound at every boot: {}\n", card.address.sysfs(),
                        pci::to_string(card.id));
  }
  for (const auto& journal : status.journals) {
    text += journal.stuck.empty() ? fmt::format("The {} of {} did not end.\n", journal.kind,
                                                join_addresses(journal.targets))
                                  : fmt::format("The {} of {} is stuck in the kernel.\n",
                                                journal.kind, join_addresses(journal.stuck));
  }
  return text.empty() ? "Gantry has bound no GPU.\n" : text;
}

Result<int> show_status(Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  VfioStatus status;
  GANTRY_TRY(status.journals, vfio::read_journals(host));
  GANTRY_TRY(status.bound, vfio::read_bound(host));
  GANTRY_TRY(status.persisted, vfio::read_persisted(host));
  fmt::print(context.out, "{}",
             context.json ? status_json(status) : printable_lines(status_text(status)));
  if (status.journals.empty()) return kOk;
  print_note("to go on or take it back: sudo gantry vfio recover", context);
  return kProblem;
}

}  // namespace

void add_vfio_list(CLI::App& vfio, Context& context, Action& chosen) {
  auto* command =
      vfio.add_subcommand("list", "GPUs, their IOMMU groups, and whether they can be passed on");
  add_machine_options(*command, context);
  add_examples(*command,
               "  gantry vfio list\n"
               "  gantry vfio list --json | jq -r '.gpus[] | select(.plan.possible) | .address'\n");
  command->callback([&chosen] { chosen = [](Context& c) { return list_for_vfio(c); }; });
}

void add_vfio_status(CLI::App& vfio, Context& context, Action& chosen) {
  auto* command = vfio.add_subcommand("status", "What Gantry has bound, and work that did not end");
  add_machine_options(*command, context);
  add_examples(*command, "  gantry vfio status\n  gantry vfio status --json\n");
  command->callback([&chosen] { chosen = [](Context& c) { return show_status(c); }; });
}

}  // namespace gantry::cli
