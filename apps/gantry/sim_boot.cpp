// SPDX-License-Identifier: Apache-2.0
// gantry sim boot: starts a simulated machine as a virtual machine, with a real kernel.
#include "base/json/writer.hpp"
#include "base/sys/shell_command.hpp"
#include "gantry/sim_commands.hpp"
#include "gantry/table.hpp"
#include "sim/machine/boot.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>

namespace gantry::cli {
namespace {

struct BootFlags {
  std::string machine;
  std::string script_file;
  sim::BootOptions boot;
  bool print = false;
};

constexpr std::string_view kPrepare =
    "in Gantry's source tree, on Debian 12: tools/setup vm && tools/vm-prepare";

// ${XDG_CACHE_HOME:-~/.cache}/gantry/vm
std::string default_parts() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return fmt::format("{}/gantry/vm", cache);
  const char* home = std::getenv("HOME");
  return fmt::format("{}/.cache/gantry/vm", home == nullptr ? "" : home);
}

// The real directory, so that a host that runs is not changed when the link names another one.
Result<std::string> find_parts(const std::string& given) {
  const auto path = given.empty() ? default_parts() : given;
  char* real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr) {
    return Error(Errc::NotFound,
                 fmt::format("there are no kernels for virtual machine hosts in {}; run this once, "
                             "{}",
                             path, kPrepare));
  }
  std::string found = real;
  std::free(real);  // NOLINT(cppcoreguidelines-no-malloc): realpath's memory
  return found;
}

Status check_kernel(const sys::Host& live, const sim::BootOptions& boot) {
  for (const auto* name : {"vmlinux", "initrd"}) {
    const auto path = fmt::format("{}/{}/{}", boot.parts, boot.kernel, name);
    if (live.exists(path)) continue;
    return Error(Errc::NotFound, fmt::format("there is no {}; --kernel is 6.1 or 6.12, and the "
                                             "kernels are made {}",
                                             path, kPrepare));
  }
  return {};
}

Status check_qemu(const sys::Host& live) {
  const char* path = std::getenv("PATH");
  const std::string_view directories = path == nullptr ? "/usr/bin" : path;
  std::size_t at = 0;
  while (at <= directories.size()) {
    const auto end = std::min(directories.find(':', at), directories.size());
    if (live.exists(fmt::format("{}/qemu-system-x86_64", directories.substr(at, end - at))))
      return {};
    at = end + 1;
  }
  return Error(Errc::NotFound,
               "qemu-system-x86_64 is not installed; run: sudo apt-get install "
               "--no-install-recommends qemu-system-x86");
}

Result<sim::BootPlan> plan_of(const BootFlags& flags) {
  GANTRY_TRY(const auto machine, sim::load_machine(flags.machine));
  GANTRY_TRY(const auto live, sys::Host::at("/"));
  auto boot = flags.boot;
  GANTRY_TRY(boot.parts, find_parts(boot.parts));
  GANTRY_CHECK(check_kernel(live, boot));
  if (!flags.script_file.empty()) {
    GANTRY_TRY(boot.script, live.read(flags.script_file));
  }
  return sim::plan_boot(machine, boot);
}

void print_boot_plan(const sim::BootPlan& plan, const Context& context) {
  json::Writer out(json::Layout::Rows);
  out.object([&] {
    out.member("preload", plan.preload);
    out.key("command");
    out.array(plan.qemu, [&](const auto& word) { out.value(word); });
    out.key("gpus");
    out.array(plan.gpus, [&](const auto& gpu) {
      out.object([&] {
        out.member("described", gpu.described.sysfs());
        out.member("booted", gpu.booted.sysfs());
      });
    });
  });
  fmt::print(context.out, "{}\n", out.text());
}

// One option with its value per line, so that a person can read it and paste it.
void print_command(const sim::BootPlan& plan, const Context& context) {
  std::string text = fmt::format("LD_PRELOAD={}", sys::shell_word(plan.preload));
  for (const auto& word : plan.qemu)
    text += fmt::format("{}{}", word.starts_with("-") ? " \\\n  " : " ", sys::shell_word(word));
  fmt::print(context.out, "{}\n", text);
}

void print_moved(const sim::BootPlan& plan, const Context& context) {
  for (const auto& gpu : plan.gpus) {
    if (gpu.described == gpu.booted) continue;
    fmt::print(context.err, "GPU {} is at {} in the virtual machine.\n", gpu.described.sysfs(),
               gpu.booted.sysfs());
  }
}

Result<int> boot_machine(const BootFlags& flags, Context& context) {
  GANTRY_TRY(const auto plan, plan_of(flags));
  if (flags.print) {
    if (context.json) {
      print_boot_plan(plan, context);
    } else {
      print_command(plan, context);
    }
    return kOk;
  }
  GANTRY_TRY(const auto live, sys::Host::at("/"));
  GANTRY_CHECK(check_qemu(live));
  print_moved(plan, context);
  std::vector<char*> argv;
  for (const auto& word : plan.qemu) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::setenv("LD_PRELOAD", plan.preload.c_str(), 1);
  std::fflush(context.out);
  std::fflush(context.err);
  ::execvp(argv[0], argv.data());
  return Error::sys(errno, fmt::format("run {}", plan.qemu.front()));
}

}  // namespace

void add_sim_boot(CLI::App& sim, Context& context, Action& chosen) {
  auto flags = std::make_shared<BootFlags>();
  auto* command = sim.add_subcommand("boot", "Start a machine as a virtual machine, with a kernel");
  command->add_option("machine", flags->machine, "One of `gantry sim list`, or a YAML file")
      ->type_name("MACHINE")
      ->required();
  command->add_option("--kernel", flags->boot.kernel, "Debian's kernel: 6.1 or 6.12")
      ->type_name("VERSION")
      ->capture_default_str();
  command->add_option("--memory", flags->boot.memory_mib, "Memory of the virtual machine in MiB")
      ->type_name("MIB")
      ->check(CLI::Range(256U, 1048576U))
      ->capture_default_str();
  command->add_option("--cpu", flags->boot.cpu, "CPU model of QEMU; max can run guests with KVM")
      ->type_name("MODEL")
      ->capture_default_str();
  command
      ->add_option("--bar-divisor", flags->boot.bar_divisor,
                   "Divide BARs above 32 MiB by this number")
      ->type_name("N")
      ->check(CLI::Range(1U, 1U << 20U))
      ->capture_default_str();
  command
      ->add_option("--parts", flags->boot.parts,
                   "Directory that tools/vm-prepare made (default: gantry/vm in the cache)")
      ->type_name("DIR")
      ->envname("GANTRY_VM_PARTS")
      ->transform(absolute_path());
  command
      ->add_option("--run", flags->script_file,
                   "Shell script that the virtual machine runs instead of a shell; then it ends")
      ->type_name("FILE")
      ->transform(absolute_path());
  command->add_flag("!--no-iommu", flags->boot.iommu, "Boot a machine that has no IOMMU");
  command
      ->add_option("--append", flags->boot.kernel_parameters,
                   "Further parameters of the kernel, such as intel_iommu=off")
      ->type_name("TEXT");
  command
      ->add_option("--disk", flags->boot.disk,
                   "Keep the machine's changes in this file, which has an ext4 file system")
      ->type_name("FILE")
      ->check(CLI::ExistingFile.description(""))
      ->transform(absolute_path());
  command->add_flag("--print", flags->print, "Print QEMU's command line and do not start it");
  command->add_flag("--json", context.json, "With --print: print JSON");
  command->add_option("qemu", flags->boot.more, "Further arguments of QEMU, after --")
      ->type_name("ARGUMENT...");
  add_examples(*command,
               "  gantry sim boot h200x8                       # Ctrl-d ends it\n"
               "  gantry sim boot t4x4 --kernel 6.12 --memory 2048\n"
               "  gantry sim boot h200x8 --print\n"
               "  truncate -s 1G changes.img && mkfs.ext4 -q changes.img\n"
               "  gantry sim boot t4x4 --disk changes.img      # again: the changes are there\n"
               "  gantry sim boot vfio -- -monitor unix:/tmp/monitor,server,nowait\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return boot_machine(*flags, c); }; });
}

}  // namespace gantry::cli
