// SPDX-License-Identifier: Apache-2.0
// gantry vfio: gives GPUs to virtual machines and takes them back.
#include "base/sys/kernel.hpp"
#include "base/sys/shell_command.hpp"
#include "gantry/commands.hpp"
#include "gantry/vfio_commands.hpp"
#include "sim/machine/pci_drivers.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace gantry::cli {
namespace {

// A simulated machine answers the writes by moving its links; its services do not exist.
vfio::Effects simulated_effects(const sys::Host& host) {
  auto effects = vfio::real_effects(host);
  effects.write = [&host](const std::string& path, std::string_view text) {
    return sim::write_sysfs(host, path, text);
  };
  effects.load_module = [&host](const std::string& module) {
    return sim::load_pci_driver(host, module);
  };
  effects.run = [](const std::vector<std::string>&) { return Status{}; };
  return effects;
}

}  // namespace

Result<vfio::Effects> vfio_effects(const sys::Host& host) {
  if (host.exists("/.gantry-sim")) return simulated_effects(host);
  if (sys::real_kernel()->is_this_machine(host)) return vfio::real_effects(host);
  return Error(Errc::Denied,
               fmt::format("{} is a tree of files, not a running machine; only `gantry vfio list`, "
                           "`gantry vfio plan` and --dry-run work on it",
                           host.root()));
}

void add_gpu_names(CLI::App& command, std::vector<std::string>& names) {
  command
      .add_option("gpu", names,
                  "PCI address, UUID or index of a GPU, as `gantry vfio list` shows it")
      ->type_name("GPU...")
      ->required();
}

Result<std::vector<model::PciAddress>> find_gpus(const vfio::MachineState& state,
                                                 const std::vector<std::string>& names) {
  std::vector<model::PciAddress> found;
  for (const auto& name : names) {
    GANTRY_TRY(const auto address, vfio::find_gpu(state, name));
    add_address_once(found, address);
  }
  return found;
}

void add_address_once(std::vector<model::PciAddress>& addresses, const model::PciAddress& address) {
  const bool known = std::find(addresses.begin(), addresses.end(), address) != addresses.end();
  if (!known) addresses.push_back(address);
}

std::string join_addresses(const std::vector<model::PciAddress>& addresses) {
  std::string text;
  for (const auto& address : addresses) text += (text.empty() ? "" : " ") + address.sysfs();
  return text;
}

vfio::Plan for_machine(vfio::Plan plan, const sys::Host& host) {
  for (auto& finding : plan.findings) finding.remedy = sys::remedy_for(host, finding.remedy);
  return plan;
}

std::string findings_text(const vfio::Plan& plan, const sys::Host& host) {
  std::string text;
  for (const auto& finding : for_machine(plan, host).findings) {
    text += fmt::format(
        "  {}: {}\n", finding.severity == vfio::Severity::Warning ? "warning" : "no", finding.text);
    if (!finding.remedy.empty()) text += fmt::format("      {}\n", finding.remedy);
  }
  return text;
}

void add_vfio(CLI::App& app, Context& context, Action& chosen) {
  auto* vfio =
      app.add_subcommand("vfio", "Give whole GPUs to virtual machines (passthrough), and back");
  vfio->require_subcommand(1);
  add_examples(*vfio,
               "  gantry vfio list                          # which GPUs can be passed through\n"
               "  gantry vfio plan 0000:3b:00.0             # what bind would do, and what is in "
               "the way\n"
               "  sudo gantry vfio bind 0000:3b:00.0 --persist\n"
               "  sudo gantry vfio release 0000:3b:00.0\n");
  add_vfio_list(*vfio, context, chosen);
  add_vfio_plan(*vfio, context, chosen);
  add_vfio_bind(*vfio, context, chosen);
  add_vfio_release(*vfio, context, chosen);
  add_vfio_status(*vfio, context, chosen);
  add_vfio_recover(*vfio, context, chosen);
  add_vfio_restore(*vfio, context, chosen);
}

}  // namespace gantry::cli
