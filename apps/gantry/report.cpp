// SPDX-License-Identifier: Apache-2.0
// gantry report: one archive with everything that a maintainer needs to find a fault.
#include "doctor/engine/report.hpp"

#include "base/core/text.hpp"
#include "base/core/unix_time.hpp"
#include "base/sys/child.hpp"
#include "base/sys/kernel.hpp"
#include "base/sys/replace_file.hpp"
#include "doctor/archive/collect.hpp"
#include "doctor/archive/mask.hpp"
#include "doctor/archive/secrets.hpp"
#include "doctor/checks/all_checks.hpp"
#include "doctor/engine/kernel_log.hpp"
#include "gantry/commands.hpp"
#include "gantry/doctor_shares.hpp"
#include "gantry/format_values.hpp"
#include "gpu/model/inventory_json.hpp"
#include "gpu/probe/snapshot.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

namespace gantry::cli {
namespace {

struct ReportOptions {
  std::string output;  // "": gantry-report-DATE.tar here; "-": standard output
  bool mask = false;
  Deadline deadline;
};

constexpr std::chrono::seconds kReportProgramDeadline{5};

struct Report {
  std::vector<tar::ArchiveFile> files;
  std::vector<std::string> notes;
  bool denied = false;
};

// "docker --version" and so on; only on the machine that we run on.
std::string program_versions() {
  constexpr std::array<std::string_view, 8> kPrograms{
      "docker", "containerd", "crio", "podman", "runc", "crun", "kubelet", "nvidia-container-cli"};
  std::string text;
  for (const auto program : kPrograms) {
    const auto run = sys::run_command({std::string(program), "--version"}, kReportProgramDeadline);
    if (!run.ok() || run->status != 0) continue;
    text += fmt::format("{}: {}\n", program, trim(run->output.substr(0, run->output.find('\n'))));
  }
  return text;
}

std::string versions(const sys::Host& host, const model::Inventory& inventory, bool this_machine) {
  const auto& driver = inventory.driver;
  auto text = fmt::format(
      "gantry: {}\nkernel: {}\ndriver module: {} ({})\ndriver libraries: {}\nCUDA: {}\n",
      GANTRY_VERSION, host.read_value("/proc/sys/kernel/osrelease").value_or("?"),
      format_known(driver.version), format_module_flavour(driver.flavour),
      format_known(driver.library_version), format_known(driver.cuda_version));
  return this_machine ? text + program_versions() : text;
}

// The kernel's messages about GPUs, modules and the bus.
std::string gpu_lines(std::string_view log) {
  constexpr std::array<std::string_view, 9> kWords{
      "nvrm", "nvidia", "nouveau", "vfio", "iommu", "pcieport", "aer:", "oom-kill", "gantry"};
  std::string text;
  for (const auto line : lines(log)) {
    const auto plain = to_lower(line);
    const bool wanted = std::any_of(kWords.begin(), kWords.end(),
                                    [&](std::string_view word) { return contains(plain, word); });
    if (wanted) text += fmt::format("{}\n", line);
  }
  const auto extra = text.size() - std::min(text.size(), doctor::kMostFileBytes);
  return text.substr(extra);
}

void add_kernel_log(Report& report, const sys::Host& host) {
  const auto log = doctor::read_kernel_log(host);
  if (!log) {
    const auto opened = host.open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_NOCTTY);
    const bool denied = !opened.ok() && opened.error().code() == Errc::Denied;
    report.denied = report.denied || denied;
    report.notes.emplace_back(denied ? "the kernel's log: only root may read it"
                                     : "the kernel's log: not found");
    return;
  }
  report.files.push_back({"kernel-log.txt", doctor::remove_secrets(gpu_lines(*log))});
}

// The logs of the units of Gantry and NVIDIA.
void add_journal(Report& report) {
  const auto run = sys::run_command(
      {"journalctl", "--no-pager", "--quiet", "--lines=2000", "--unit=gantry*", "--unit=nvidia-*"},
      kReportProgramDeadline);
  if (!run.ok() || run->status != 0 || run->output.empty()) return;
  report.files.push_back({"journal.txt", doctor::remove_secrets(run->output)});
}

void add_doctor_report(Report& report, const sys::Host& host, const model::Inventory& inventory,
                       bool this_machine) {
  auto sources = doctor::live_sources(host);
  sources.this_machine = this_machine;
  sources.shares = query_share_daemon(host, doctor::all_checks());
  const doctor::Facts facts(host, inventory, sources);
  const auto outcomes = doctor::run_checks(facts, doctor::all_checks());
  report.files.push_back(
      {"doctor.txt", doctor::report_text(outcomes, {.detail = doctor::Detail::All})});
  report.files.push_back({"doctor.json", doctor::report_json(outcomes, {}, facts.guest())});
}

void add_collected(Report& report, const sys::Host& host) {
  auto collected = doctor::collect_files(host);
  for (auto& file : collected.files) {
    report.files.push_back({"files/" + file.name, std::move(file.content)});
  }
  report.notes.insert(report.notes.end(), collected.notes.begin(), collected.notes.end());
  report.denied = report.denied || collected.denied;
}

doctor::IdentityMask mask_of(const sys::Host& host, const model::Inventory& inventory) {
  doctor::IdentityMask mask;
  for (const char* path : {"/proc/sys/kernel/hostname", "/etc/hostname"}) {
    const auto name = host.read_value(path).value_or("");
    if (name == "localhost") continue;
    mask.add_word(name, "host");
    mask.add_word(std::string_view(name).substr(0, name.find('.')), "host");
  }
  for (const auto& gpu : inventory.gpus) mask.add_word(gpu.serial, "serial");
  return mask;
}

// A list of the archive's files and of what is missing from it.
std::string report_contents(const Report& report, const ReportOptions& options) {
  auto text = fmt::format("Report of gantry {}{}\n\nFiles:\n", GANTRY_VERSION,
                          options.mask ? ", identities are masked" : "");
  for (const auto& file : report.files) {
    text += fmt::format("  {} ({} bytes)\n", file.name, file.content.size());
  }
  if (!report.notes.empty()) text += "\nNot complete:\n";
  for (const auto& note : report.notes) text += fmt::format("  {}\n", note);
  return text;
}

Report make_report(const ReportOptions& options, const sys::Host& host,
                   const model::Inventory& inventory) {
  const bool this_machine = sys::real_kernel()->is_this_machine(host);
  Report report;
  report.files.push_back({"versions.txt", versions(host, inventory, this_machine)});
  report.files.push_back({"inventory.json", model::to_json(inventory)});
  add_doctor_report(report, host, inventory, this_machine);
  add_kernel_log(report, host);
  if (this_machine) add_journal(report);
  add_collected(report, host);
  report.files.insert(report.files.begin(), {"MANIFEST.txt", report_contents(report, options)});
  if (options.mask) {
    auto mask = mask_of(host, inventory);
    for (auto& file : report.files) {
      file.name = mask.apply(file.name);
      file.content = mask.apply(file.content);
    }
  }
  for (auto& file : report.files) file.name = "gantry-report/" + file.name;
  return report;
}

Status write_archive(const std::string& path, const std::string& bytes, const Context& context) {
  if (path == "-" && ::isatty(::fileno(context.raw_out)) == 1) {
    return Error(Errc::Invalid,
                 "standard output is a terminal: name a file (-o FILE), or use `| tar -tv`");
  }
  if (path != "-") return sys::replace_file(path, bytes, 0600).in("writing the report");
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), context.raw_out) == bytes.size();
  if (written && std::fflush(context.raw_out) == 0) return {};
  return Error::sys(errno, "writing the report to standard output");
}

Result<int> write_report(const ReportOptions& options, const Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  probe::SnapshotOptions how;
  how.deadline = options.deadline.duration();
  GANTRY_TRY(const auto inventory, probe::snapshot(host, how));
  const auto report = make_report(options, host, inventory);
  const auto now = unix_now();
  const auto bytes = tar::to_tar(report.files, now);
  const auto path = options.output.empty()
                        ? fmt::format("./gantry-report-{:%Y%m%d-%H%M%S}.tar", fmt::gmtime(now))
                        : options.output;
  GANTRY_CHECK(write_archive(path, bytes, context));
  fmt::print(context.err, "Wrote {}: {} files, {} KiB.\n", path == "-" ? "the report" : path,
             report.files.size(), bytes.size() >> 10U);
  if (!options.mask) {
    fmt::print(context.err,
               "It contains UUIDs, serial numbers, the host's name and addresses; --mask replaces "
               "them.\n");
  }
  if (report.denied) {
    fmt::print(context.err,
               "Some files can be read by root only: see MANIFEST.txt, or use sudo.\n");
  }
  return kOk;
}

}  // namespace

void add_report(CLI::App& app, Context& context, Action& chosen) {
  auto options = std::make_shared<ReportOptions>();
  auto* command = app.add_subcommand(
      "report", "Write an archive with everything that a maintainer needs to find a fault");
  add_root_option(*command, context);
  command
      ->add_option("-o,--output", options->output,
                   "File to write, - for standard output (default: gantry-report-DATE.tar)")
      ->type_name("FILE")
      ->transform(absolute_path());
  command->add_flag("--mask", options->mask,
                    "Replace UUIDs, serial numbers, host and user names and addresses; equal "
                    "identities get equal replacements");
  add_deadline(*command, options->deadline);
  add_examples(
      *command,
      "  sudo gantry report                       # gantry-report-DATE.tar, here\n"
      "  sudo gantry report --mask -o fault.tar   # may be shown to strangers\n"
      "  gantry report -o - | tar -tv             # what is in it\n"
      "  gantry report --root /tmp/machine        # a simulated machine, or /host in a pod");
  command->callback(
      [=, &chosen] { chosen = [=](Context& c) { return write_report(*options, c); }; });
}

}  // namespace gantry::cli
