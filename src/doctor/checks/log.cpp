// SPDX-License-Identifier: Apache-2.0
// The kernel's messages about the GPUs since boot.
#include "base/core/text.hpp"
#include "doctor/checks/all_checks.hpp"
#include "doctor/checks/check_tables_internal.hpp"
#include "doctor/engine/fix_steps.hpp"
#include "doctor/engine/kernel_log.hpp"
#include "doctor/engine/tally.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace gantry::doctor {
namespace {

Finding unreadable(const Facts& f) {
  if (f.denied("/dev/kmsg")) return skip_needs_root("/dev/kmsg");
  return skip("the kernel's log cannot be read here");
}

// A log without errors is a good sign only if a driver has a GPU to write about.
Finding nothing_found(const Facts& f, std::string summary, std::string evidence) {
  if (f.gpu_functions().empty() && f.inventory().gpus.empty()) {
    return skip("no GPU on the bus: see pci.present");
  }
  if (!f.driver_loaded()) return skip("the nvidia module is not loaded");
  return ok(std::move(summary), {{"kernel log", std::move(evidence)}});
}

std::string shortened(const std::string& line) {
  return line.size() > 200 ? line.substr(0, 200) + "..." : line;
}

// Xid 154 contains the recovery that the driver asks for; "None" withdraws an earlier request.
XidClass class_of(const Xid& xid) {
  if (xid.number != 154) return xid_meaning(xid.number).kind;
  return contains(xid.text, "(None)") && xid.text.rfind("(None)") > xid.text.find(" to ")
             ? XidClass::Application
             : XidClass::Critical;
}

std::string remedy_for(const XidMeaning& meaning, const std::vector<std::string>& where) {
  constexpr std::string_view kLook = "sudo dmesg | grep -B2 -A5 'NVRM: Xid'";
  if (contains(meaning.action, "reboot")) {
    return fmt::format("sudo reboot  # {}; before: {}", meaning.action, kLook);
  }
  std::vector<std::string> gpus;  // valid PCI addresses only: log text must not reach a shell
  for (const auto& pci : where) {
    const auto address = model::PciAddress::parse(pci + ".0");
    if (address) gpus.push_back(address->sysfs());
  }
  if (!contains(meaning.action, "reset") || gpus.empty()) {
    return fmt::format("{}  # {}", kLook, meaning.action);
  }
  return fmt::format("{}  # {}; before: {}", command_for(gpus, "sudo nvidia-smi --gpu-reset -i @"),
                     meaning.action, kLook);
}

Finding judge_xid(const Facts& f) {
  if (!f.kernel_log()) return unreadable(f);
  const auto xids = find_xids(*f.kernel_log());
  if (xids.empty()) return nothing_found(f, "no Xid since boot", "no \"NVRM: Xid\"");
  const Xid* worst = &xids.front();
  std::map<unsigned, int> counts;
  for (const auto& xid : xids) {
    ++counts[xid.number];
    if (class_of(xid) >= class_of(*worst)) worst = &xid;
  }
  const auto meaning = xid_meaning(worst->number);
  std::string all;
  for (const auto& [number, count] : counts) {
    all += fmt::format("{}{} ({}x)", all.empty() ? "" : ", ", number, count);
  }
  const std::vector<Evidence> read{
      {"kernel log", "Xids since boot: " + all},
      {"kernel log",
       shortened(fmt::format("Xid ({}): {}, {}", worst->pci, worst->number, worst->text))}};
  std::vector<std::string> where;
  for (const auto& xid : xids) {
    const bool new_one = std::find(where.begin(), where.end(), xid.pci) == where.end();
    if (xid.number == worst->number && new_one) where.push_back(xid.pci);
  }
  const auto summary =
      fmt::format("Xid {} on {}: {}", worst->number, join_names(where), meaning.meaning);
  const auto remedy = remedy_for(meaning, where);
  switch (class_of(*worst)) {
    case XidClass::Critical: {
      auto finding = fail(summary, read).advise(remedy);
      const bool lost = worst->number == 79;  // the GPU has fallen off the bus
      return lost ? std::move(finding).unless_explained_by("pci.alive gpu.lost") : finding;
    }
    case XidClass::Notable: return warn(summary, read).advise(remedy);
    case XidClass::Application: break;
  }
  return info(summary, read)
      .because("A program on the GPU made an error; the GPU itself is healthy.")
      .advise(remedy);
}

Finding judge_start(const Facts& f) {
  if (!f.kernel_log()) return unreadable(f);
  for (std::string_view message : {"RmInitAdapter failed", "rm_init_adapter failed"}) {
    const auto found = f.log_lines_with(message);
    if (found.empty()) continue;
    return fail("the driver could not start a GPU", {{"kernel log", shortened(found.back())}});
  }
  return nothing_found(f, "the driver started every GPU", "no \"RmInitAdapter failed\"");
}

// Gantry can repair one cause only: firmware that the kernel does not find.
Steps fix_start(const Facts& f) {
  const auto* firmware = find_check("module.firmware");
  const auto verdict = firmware->judge(f).verdict;
  return verdict == Verdict::Warn || verdict == Verdict::Fail ? firmware->fix(f) : Steps{};
}

Finding judge_unsupported(const Facts& f) {
  if (!f.kernel_log()) return unreadable(f);
  struct Message {
    std::string_view text;
    std::string_view remedy;
  };
  constexpr std::array kMessages{
      Message{"Legacy drivers", "install the legacy driver branch that the message names"},
      Message{"legacy drivers", "install the legacy driver branch that the message names"},
      Message{"requires use of the NVIDIA open kernel modules", "install the open kernel module"},
      Message{"not supported by open nvidia.ko", "install the proprietary kernel module"},
      Message{"is not supported by the NVIDIA", "install a driver branch that knows this card"},
  };
  for (const auto& message : kMessages) {
    const auto found = f.log_lines_with(message.text);
    if (found.empty()) continue;
    return fail("the driver does not support a card", {{"kernel log", shortened(found.back())}})
        .advise(std::string(message.remedy));
  }
  return nothing_found(f, "the driver supports every card", "no refusal");
}

Finding judge_api_mismatch(const Facts& f) {
  if (!f.kernel_log()) return unreadable(f);
  const auto found = f.log_lines_with("API mismatch");
  if (found.empty())
    return nothing_found(f, "no program used libraries of another version", "none");
  const auto& driver = f.inventory().driver;
  if (!driver.version.empty() && driver.version == driver.library_version) {
    return warn("a program uses driver libraries of another version",
                {{"kernel log", shortened(found.back())}});
  }
  return warn("a program used driver libraries of another version",
              {{"kernel log", shortened(found.back())}})
      .unless_explained_by("module.mismatch");
}

Finding judge_unbind(const Facts& f) {
  for (const auto& process : f.processes()) {
    if (process.state != 'D') continue;
    const auto path = fmt::format("/proc/{}/wchan", process.pid);
    const auto where = f.value(path).value_or("");
    if (contains(where, "nv_pci_remove")) {
      return fail(fmt::format("process {} ({}) hangs while it unbinds a GPU from the driver",
                              process.pid, process.name),
                  {{path, where}});
    }
  }
  if (!f.kernel_log()) return unreadable(f);
  const auto found = f.log_lines_with("with non-zero usage count");
  if (found.empty()) return nothing_found(f, "no GPU was unbound while in use", "none");
  return warn("a GPU was unbound from the driver while in use",
              {{"kernel log", shortened(found.back())}});
}

constexpr Check kLogChecks[] = {
    {.id = "log.xid",
     .reference = "H27",
     .area = Area::Gpu,
     .title = "the driver has reported no Xid since boot",
     .reads = "/dev/kmsg, /var/log/dmesg",
     .cause = "The driver reported an error of the GPU, of the bus or of a program.",
     .remedy = "sudo dmesg | grep 'NVRM: Xid'",
     .judge = judge_xid},
    {.id = "log.start",
     .reference = "H13",
     .area = Area::Gpu,
     .fix_class = FixClass::Automatic,
     .title = "the driver started every GPU",
     .reads = "/dev/kmsg, /var/log/dmesg",
     .cause =
         "Missing firmware, wrong module flavour, no addresses for the BARs, or a broken card: see "
         "module.firmware, module.flavour, pci.bars.",
     .remedy = "sudo dmesg | grep -B5 RmInitAdapter",
     .judge = judge_start,
     .fix = fix_start,
     .by_hand = "the kernel can find the firmware: other lines of the log name the reason"},
    {.id = "log.unsupported",
     .reference = "H14",
     .area = Area::Gpu,
     .title = "the driver supports every card",
     .reads = "/dev/kmsg, /var/log/dmesg",
     .cause = "The driver branch is too new or too old for the card, or has the wrong flavour.",
     .remedy = "install a driver branch that knows this card",
     .judge = judge_unsupported},
    {.id = "log.api-mismatch",
     .reference = "H11",
     .area = Area::Gpu,
     .fix_class = FixClass::OnRequest,
     .title = "no program used libraries of another version",
     .reads = "/dev/kmsg, /var/log/dmesg",
     .cause = "A container or program brings its own libcuda or libnvidia-ml, or the packages were "
              "upgraded under running programs.",
     .remedy = "sudo dmesg | grep -A2 'API mismatch'  # names the versions",
     .judge = judge_api_mismatch,
     .by_hand = "the owner of the program must restart it"},
    {.id = "log.unbind",
     .reference = "H21",
     .area = Area::Gpu,
     .title = "no GPU was unbound from the driver while in use",
     .reads = "/dev/kmsg, /proc/*/{stat,wchan}",
     .cause =
         "A GPU was unbound or removed while a program still had it open; the kernel waits for "
         "that program forever.",
     .remedy = "sudo reboot",
     .judge = judge_unbind},
};

}  // namespace

std::span<const Check> log_checks() {
  return kLogChecks;
}

}  // namespace gantry::doctor
