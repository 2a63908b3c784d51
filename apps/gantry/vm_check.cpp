// SPDX-License-Identifier: Apache-2.0
// gantry vm check: says what is missing in the configuration of a virtual machine.
#include "base/core/printable.hpp"
#include "base/json/writer.hpp"
#include "base/sys/shell_command.hpp"
#include "gantry/terminal.hpp"
#include "gantry/vm_commands.hpp"
#include "gantry/vm_gpus.hpp"
#include "gpu/probe/snapshot.hpp"
#include "vm/hypervisor/check.hpp"
#include "vm/hypervisor/xml.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>

namespace gantry::cli {
namespace {

constexpr std::size_t kMachineFileLimit = hypervisor::kXmlSizeLimit;

struct VmCheckFlags {
  std::string file;
  Deadline deadline;
};

Result<std::string> read_machine_file(const std::string& file) {
  if (file != "-") {
    GANTRY_TRY(const auto here, sys::Host::at("/"));
    return here.read(file, kMachineFileLimit);
  }
  std::string text;
  std::array<char, 65536> buffer{};
  while (const auto got = std::fread(buffer.data(), 1, buffer.size(), stdin)) {
    text.append(buffer.data(), got);
    if (text.size() > kMachineFileLimit)
      return Error(Errc::Invalid,
                   fmt::format("the file has more than {} bytes", kMachineFileLimit));
  }
  return text;
}

// A .vmx is for an ESXi host, which is not this machine. Without /proc and /sys nothing is known.
Result<std::vector<hypervisor::GuestGpu>> gpus_for(std::string_view text, const VmCheckFlags& flags,
                                                   Context& context) {
  using Gpus = std::vector<hypervisor::GuestGpu>;
  if (hypervisor::file_kind(text) == hypervisor::FileKind::Vmx) return Gpus{};
  GANTRY_TRY(const auto host, open_host(context));
  const auto machine = while_waiting(context, [&] {
    return probe::snapshot(host,
                           {.deadline = flags.deadline.duration(), .files = probe::FindFiles::No});
  });
  return machine.ok() ? read_guest_gpus(host, *machine) : Gpus{};
}

std::string check_json(const hypervisor::CheckedFile& checked) {
  json::Writer out(json::Layout::Indented);
  out.object([&] {
    out.member("schema", 1);
    out.member("kind", hypervisor::describe(checked.kind));
    out.member("gpus", checked.gpus);
    out.member("vgpus", checked.vgpus);
    out.member("unknown_functions", checked.unknown);
    out.array("findings", checked.findings, [&](const hypervisor::Finding& finding) {
      out.object([&] {
        out.member("id", finding.id);
        out.member("severity",
                   finding.severity == hypervisor::Severity::Problem ? "problem" : "advice");
        out.member("what", finding.what);
        out.member("why", finding.why);
        out.member("add", finding.add);
        if (finding.line != 0) out.member("line", finding.line);
      });
    });
  });
  return out.text() + "\n";
}

std::string counted(int count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

void print_findings(const std::string& name, const hypervisor::CheckedFile& checked,
                    Context& context) {
  const auto heading =
      fmt::format("{}: {} with {} and {}\n", name, hypervisor::describe(checked.kind),
                  counted(checked.gpus, "whole GPU"), counted(checked.vgpus, "vGPU"));
  fmt::print(context.out, "{}", wrap_lines(heading, context.columns));
  for (const auto& finding : checked.findings) {
    const auto where = finding.line == 0 ? "" : fmt::format(" (line {})", finding.line);
    const auto text =
        fmt::format("\n{}{}: {}\n  why: {}\n",
                    finding.severity == hypervisor::Severity::Problem ? "problem" : "advice", where,
                    printable(finding.what), printable(finding.why));
    fmt::print(context.out, "{}", wrap_lines(text, context.columns));
    if (!finding.add.empty()) {
      fmt::print(context.out, "  add: {}\n", printable(sys::with_root(finding.add, context.root)));
    }
  }
  if (checked.findings.empty()) fmt::print(context.out, "nothing is missing\n");
}

Result<int> vm_check(const VmCheckFlags& flags, Context& context) {
  const auto name = flags.file == "-" ? std::string("standard input") : flags.file;
  GANTRY_TRY(const auto text, read_machine_file(flags.file));
  GANTRY_TRY(const auto gpus, gpus_for(text, flags, context));
  GANTRY_TRY(const auto checked, hypervisor::check_config(text, gpus).in(name));
  if (context.json) {
    fmt::print(context.out, "{}", check_json(checked));
  } else {
    print_findings(name, checked, context);
  }
  const auto& found = checked.findings;
  const bool problem = std::any_of(found.begin(), found.end(), [](const auto& finding) {
    return finding.severity == hypervisor::Severity::Problem;
  });
  return problem ? kProblem : kOk;
}

}  // namespace

void add_vm_check(CLI::App& vm, Context& context, Action& chosen) {
  const auto flags = std::make_shared<VmCheckFlags>();
  auto* command = vm.add_subcommand(
      "check",
      "Say what is missing in a libvirt domain, a QEMU command line or a VMware .vmx file. Exit "
      "status: 0 no problem, 1 a problem");
  command->add_option("FILE", flags->file, "The file; - is standard input")
      ->required()
      ->transform(absolute_path());
  add_machine_options(*command, context);
  add_deadline(*command, flags->deadline);
  add_examples(*command,
               "  gantry vm check guest.vmx\n"
               "  virsh dumpxml guest | gantry vm check -\n"
               "  gantry vm check /proc/$(pidof qemu-system-x86_64)/cmdline\n"
               "  gantry vm check guest.xml --json | jq -r '.findings[].add'\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return vm_check(*flags, c); }; });
}

}  // namespace gantry::cli
