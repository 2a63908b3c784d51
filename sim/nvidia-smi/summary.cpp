// SPDX-License-Identifier: Apache-2.0
//
// nvidia-smi without arguments: the table.
#include "sim/nvidia-smi/commands.hpp"
#include "sim/nvidia-smi/mig_devices.hpp"
#include "sim/nvidia-smi/processes.hpp"
#include "sim/nvidia-smi/readings.hpp"
#include "sim/nvidia-smi/summary_layout.hpp"

#include <stdlib.h>
#include <time.h>

// Row formats come from the layout table.
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

namespace smi {
namespace {

Text shortened(const char* text, unsigned width) {
  Text out;
  if (strlen(text) <= width) {
    out.set("%s", text);
  } else {
    out.set("%.*s...", static_cast<int>(width - 3), text);
  }
  return out;
}

// Long paths keep their end.
Text tail_of(const char* text, unsigned width) {
  Text out;
  const size_t length = strlen(text);
  if (length <= width) {
    out.set("%s", text);
  } else {
    out.set("...%s", text + length - (width - 3));
  }
  return out;
}

// "143771 MiB" -> "143771MiB", "35 C" -> "35C", "36 %" -> "36%"
Text joined(const Text& value) {
  Text out;
  const char* space = strchr(value.c_str(), ' ');
  if (space == nullptr) return value;
  out.set("%.*s%s", static_cast<int>(space - value.c_str()), value.c_str(), space + 1);
  return out;
}

Text reading(const Gpu& gpu, Read read, Arg arg = {}) {
  Text out;
  read(gpu, arg, out);
  return out;
}

Text whole_watts(const Text& value) {
  Text out;
  if (value.is(kNotAvailable)) return value;
  out.set("%.0fW", strtod(value.c_str(), nullptr));
  return out;
}

const char* short_on(const Text& value) {
  return value.is("Enabled") ? "On" : value.is("Disabled") ? "Off" : kNotAvailable;
}

const char* short_compute_mode(const Text& value) {
  if (value.is("Exclusive_Process")) return "E. Process";
  if (value.is("Exclusive_Thread")) return "E. Thread";
  return value.c_str();
}

// With MIG each instance has its own count; without ECC there is none.
Text ecc_cell(const Gpu& gpu) {
  if (mig_enabled(gpu)) {
    Text out;
    out.set("On");
    return out;
  }
  const Text mode = reading(gpu, ecc_mode, {});
  if (mode.is("Disabled")) {
    Text out;
    out.set("Off");
    return out;
  }
  return reading(gpu, ecc_volatile, {static_cast<int>(Ecc::Uncorrected)});
}

void show_gpu(const SummaryLayout& layout, const Gpu& gpu) {
  Text index;
  index.set("%u", gpu.index);
  const Text name = shortened(reading(gpu, product_name).c_str(), layout.name_width);
  printf(layout.gpu[0], index.c_str(), name.c_str(), short_on(reading(gpu, persistence)),
         gpu.bus_id, short_on(reading(gpu, display_active)), ecc_cell(gpu).c_str());
  putchar('\n');
  const Text mode = reading(gpu, compute_mode);
  const Text busy = mig_enabled(gpu) ? Text() : joined(reading(gpu, utilization));
  printf(layout.gpu[1], joined(reading(gpu, fan_speed)).c_str(),
         joined(reading(gpu, temperature)).c_str(), reading(gpu, performance_state).c_str(),
         whole_watts(reading(gpu, power_draw)).c_str(),
         whole_watts(reading(gpu, power_limit)).c_str(),
         joined(reading(gpu, fb_memory, {static_cast<int>(Mem::Used)})).c_str(),
         joined(reading(gpu, fb_memory)).c_str(), busy.empty() ? kNotAvailable : busy.c_str(),
         short_compute_mode(mode));
  putchar('\n');
  if (layout.gpu[2] != nullptr) {
    printf(layout.gpu[2], reading(gpu, mig_mode).c_str());
    putchar('\n');
  }
  puts(layout.gpu_rule);
}

Text size_cell(unsigned long long bytes) {
  Text out;
  out.set("%lluMiB", mebibytes(bytes));
  return out;
}

void show_mig_device(const SummaryLayout& layout, const Gpu& gpu, const MigDevice& device) {
  const nvmlDeviceAttributes_t& has = device.attributes;
  printf(layout.mig[0], gpu.index, device.gpu_instance, device.compute_instance, device.index,
         size_cell(device.memory.used).c_str(), size_cell(device.memory.total).c_str(),
         has.multiprocessorCount, "0", has.sharedCopyEngineCount, has.sharedEncoderCount,
         has.sharedDecoderCount, has.sharedOfaCount, has.sharedJpegCount);
  putchar('\n');
  printf(layout.mig[1], size_cell(device.bar1.bar1Used).c_str(),
         size_cell(device.bar1.bar1Total).c_str());
  putchar('\n');
  puts(layout.mig_rule);
}

void show_mig_devices(const SummaryLayout& layout, const Session& session) {
  bool enabled = false;
  for (unsigned i = 0; i < session.count; ++i) enabled = enabled || mig_enabled(session.gpus[i]);
  if (!enabled || layout.mig_title[0] == '\0') return;
  putchar('\n');
  puts(layout.edge);
  puts(layout.mig_title);
  puts(layout.mig_rule);
  for (const char* line : layout.mig_head) puts(line);
  puts(layout.mig_head_rule);
  unsigned shown = 0;
  for (unsigned i = 0; i < session.count; ++i) {
    MigDevices devices;
    read_mig_devices(session.gpus[i], devices);
    for (unsigned d = 0; d < devices.count; ++d)
      show_mig_device(layout, session.gpus[i], devices.rows[d]);
    shown += devices.count;
  }
  if (shown == 0) {
    puts(layout.mig_none);
    puts(layout.edge);
  }
}

Text instance_cells(const Process& process) {
  Text out;
  if (process.gpu_instance == kNoInstance) {
    out.set("   N/A  N/A");
  } else {
    out.set("%5u%5u ", process.gpu_instance, process.compute_instance);
  }
  return out;
}

void show_processes(const SummaryLayout& layout, const Session& session) {
  puts(layout.gap);
  puts(layout.edge);
  for (const char* line : layout.process_head) {
    if (line != nullptr) puts(line);
  }
  puts(layout.process_rule);
  unsigned shown = 0;
  for (unsigned i = 0; i < session.count; ++i) {
    Processes processes;
    read_processes(session.gpus[i], Contexts::All, processes);
    for (unsigned p = 0; p < processes.count; ++p) {
      const Process& row = processes.rows[p];
      printf(layout.process, session.gpus[i].index, instance_cells(row).c_str(), row.pid, row.type,
             tail_of(row.name.c_str(), layout.process_name_width).c_str(),
             joined(row.memory).c_str());
      putchar('\n');
    }
    shown += processes.count;
  }
  if (shown == 0) puts(layout.process_none);
  puts(layout.edge);
}

}  // namespace

Text clock_text() {
  Text out;
  const time_t now = time(nullptr);
  tm local = {};
  localtime_r(&now, &local);
  strftime(out.data(), 64, "%a %b %e %H:%M:%S %Y", &local);
  return out;
}

int show_summary(Session& session) {
  const SummaryLayout& layout = layout_for(session.driver_major, session.driver_minor);
  Text cuda;
  cuda.set("%u.%u", session.cuda_version / 1000, session.cuda_version % 1000 / 10);
  printf("%s       \n", clock_text().c_str());
  puts(layout.edge);
  printf(layout.version, session.library_version.c_str(), session.driver_version.c_str(),
         cuda.c_str());
  putchar('\n');
  puts(layout.version_rule);
  for (const char* line : layout.head) {
    if (line != nullptr) puts(line);
  }
  puts(layout.head_rule);
  for (unsigned i = 0; i < session.count; ++i) show_gpu(layout, session.gpus[i]);
  show_mig_devices(layout, session);
  show_processes(layout, session);
  return kDone;
}

}  // namespace smi
