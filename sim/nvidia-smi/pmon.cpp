// SPDX-License-Identifier: Apache-2.0
//
// nvidia-smi pmon: a row per process and second; a GPU without processes has one row of dashes.
#include "sim/nvidia-smi/commands.hpp"
#include "sim/nvidia-smi/monitor.hpp"
#include "sim/nvidia-smi/processes.hpp"
#include "sim/nvidia-smi/readings.hpp"

#include <stdlib.h>

namespace smi {
namespace {

bool shows(const MonitorOptions& options, char group) {
  return strchr(options.metrics != nullptr ? options.metrics : "u", group) != nullptr;
}

unsigned engines_shown(const Session& session) {
  return session.at_least(535) ? 6 : 4;
}

constexpr const char* kEngines[] = {"sm", "mem", "enc", "dec", "jpg", "ofa"};

void pmon_line(const Session& session, const MonitorOptions& options, bool units) {
  const int width = column_width(session);
  print_heading(options, units ? "Idx" : "gpu", units ? "units" : "names");
  printf(" %*s %*s", width + 5, units ? "#" : "pid", width, units ? "C/G" : "type");
  for (unsigned i = 0; shows(options, 'u') && i < engines_shown(session); ++i) {
    printf(" %*s", width, units ? "%" : kEngines[i]);
  }
  if (shows(options, 'm')) printf(" %*s", width, units ? "MB" : "fb");
  printf("%*s%s\n", width - 2, "", units ? "name" : "command");
}

void pmon_header(const Session& session, const MonitorOptions& options) {
  pmon_line(session, options, false);
  pmon_line(session, options, true);
}

struct ProcessLoads {
  unsigned count = 0;
  nvmlProcessUtilizationSample_t rows[kMaxListedProcesses] = {};

  const nvmlProcessUtilizationSample_t* of(unsigned pid) const {
    for (unsigned i = 0; i < count; ++i) {
      if (rows[i].pid == pid) return &rows[i];
    }
    return nullptr;
  }
};

void read_process_loads(const Gpu& gpu, ProcessLoads& out) {
  out.count = kMaxListedProcesses;
  if (call(nvml_of(gpu).nvmlDeviceGetProcessUtilization, gpu.handle, out.rows, &out.count, 0ULL) !=
      NVML_SUCCESS) {
    out.count = 0;
  }
}

// The first letters of the program's name, without its directory.
Text command_of(const Process& process) {
  Text out;
  const char* slash = strrchr(process.name.c_str(), '/');
  out.set("%.14s", slash != nullptr ? slash + 1 : process.name.c_str());
  return out;
}

void print_load(int width, const nvmlProcessUtilizationSample_t* sample, unsigned engine) {
  const unsigned values[] = {
      sample == nullptr ? 0 : sample->smUtil, sample == nullptr ? 0 : sample->memUtil,
      sample == nullptr ? 0 : sample->encUtil, sample == nullptr ? 0 : sample->decUtil};
  if (sample == nullptr || engine >= 4 || values[engine] == 0) {
    printf(" %*s", width, "-");
  } else {
    printf(" %*u", width, values[engine]);
  }
}

void process_row(const Gpu& gpu, const MonitorOptions& options, const Process* process,
                 const ProcessLoads& loads) {
  const int width = column_width(*gpu.session);
  print_stamp(options);
  printf("%5u", gpu.index);
  if (process == nullptr) {
    printf(" %*s %*s", width + 5, "-", width, "-");
  } else {
    printf(" %*u %*s", width + 5, process->pid, width, process->type);
  }
  const auto* sample = process == nullptr ? nullptr : loads.of(process->pid);
  for (unsigned i = 0; shows(options, 'u') && i < engines_shown(*gpu.session); ++i) {
    print_load(width, sample, i);
  }
  if (shows(options, 'm')) {
    const bool known = process != nullptr && !process->memory.is(kNotAvailable);
    const unsigned long mebi = known ? strtoul(process->memory.c_str(), nullptr, 10) : 0;
    if (known) printf(" %*lu", width, mebi);
    if (!known) printf(" %*s", width, "-");
  }
  printf("%*s%-14s\n", width - 2, "", process == nullptr ? "-" : command_of(*process).c_str());
}

void pmon_row(const Gpu& gpu, const MonitorOptions& options) {
  Processes processes;
  read_processes(gpu, Contexts::All, processes);
  ProcessLoads loads;
  read_process_loads(gpu, loads);
  if (processes.count == 0) process_row(gpu, options, nullptr, loads);
  for (unsigned i = 0; i < processes.count; ++i) {
    process_row(gpu, options, &processes.rows[i], loads);
  }
}

}  // namespace

int pmon(Session& session, int argc, char** argv) {
  MonitorOptions options;
  const int parsed = parse_monitor(argc, argv, "pmon", "um", options);
  if (parsed != kDone) return parsed;
  if (options.help) {
    fputs(
        "    pmon -- A row for each process on the GPUs, again and again.\n\n"
        "    Usage: nvidia-smi pmon [options]\n\n"
        "    -i   --id         These GPUs: index, UUID or PCI address, separated by commas.\n"
        "    -d   --delay      Seconds between rows; default 1.\n"
        "    -c   --count      Rounds, then the end.\n"
        "    -s   --select     Columns: u utilization, m memory; default u.\n"
        "    -o   --options    D the date, T the time of each row.\n"
        "    -f   --filename   Write to a file.\n",
        stdout);
    return kDone;
  }
  return run_monitor(session, options, {pmon_header, pmon_row});
}

}  // namespace smi
