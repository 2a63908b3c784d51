// SPDX-License-Identifier: Apache-2.0
#include "sim/nvidia-smi/mig_devices.hpp"
#include "sim/nvidia-smi/processes.hpp"
#include "sim/nvidia-smi/report_table.hpp"

namespace smi {
namespace {

// Lines about a process have the colon in the column of older, narrower reports.
constexpr int kProcessColumn = 42;
constexpr unsigned kMaxClocks = 256;

void count(ReportWriter& writer, unsigned depth, const char* label, const char* tag,
           unsigned value) {
  Text text;
  text.set("%u", value);
  writer.value(depth, label, tag, text.c_str());
}

void size(ReportWriter& writer, unsigned depth, const char* label, const char* tag,
          unsigned long long bytes) {
  Text text;
  text.set("%llu MiB", mebibytes(bytes));
  writer.value(depth, label, tag, text.c_str());
}

void megahertz(ReportWriter& writer, unsigned depth, const char* label, const char* tag,
               unsigned mhz) {
  Text text;
  text.set("%u MHz", mhz);
  writer.value(depth, label, tag, text.c_str());
}

// In XML the devices are in a list, in text they follow each other.
void report_mig_device(ReportWriter& writer, const MigDevice& device) {
  const unsigned depth = writer.xml() ? 2 : 1;
  const nvmlDeviceAttributes_t& has = device.attributes;
  writer.section(depth, "MIG Device", "mig_device");
  count(writer, depth + 1, "Index", "index", device.index);
  count(writer, depth + 1, "GPU Instance ID", "gpu_instance_id", device.gpu_instance);
  count(writer, depth + 1, "Compute Instance ID", "compute_instance_id", device.compute_instance);
  writer.section(depth + 1, "Device Attributes", "device_attributes");
  writer.section(depth + 2, "Shared", "shared");
  count(writer, depth + 3, "Multiprocessor count", "multiprocessor_count", has.multiprocessorCount);
  count(writer, depth + 3, "Copy Engine count", "copy_engine_count", has.sharedCopyEngineCount);
  count(writer, depth + 3, "Encoder count", "encoder_count", has.sharedEncoderCount);
  count(writer, depth + 3, "Decoder count", "decoder_count", has.sharedDecoderCount);
  count(writer, depth + 3, "OFA count", "ofa_count", has.sharedOfaCount);
  count(writer, depth + 3, "JPG count", "jpg_count", has.sharedJpegCount);
  writer.section(depth + 1, "ECC Errors", "ecc_error_count");
  writer.section(depth + 2, "Volatile", "volatile_count");
  count(writer, depth + 3, "SRAM Uncorrectable", "sram_uncorrectable", 0);
  writer.section(depth + 1, "FB Memory Usage", "fb_memory_usage");
  size(writer, depth + 2, "Total", "total", device.memory.total);
  size(writer, depth + 2, "Reserved", "reserved", device.reserved);
  size(writer, depth + 2, "Used", "used", device.memory.used);
  size(writer, depth + 2, "Free", "free", device.memory.free);
  writer.section(depth + 1, "BAR1 Memory Usage", "bar1_memory_usage");
  size(writer, depth + 2, "Total", "total", device.bar1.bar1Total);
  size(writer, depth + 2, "Used", "used", device.bar1.bar1Used);
  size(writer, depth + 2, "Free", "free", device.bar1.bar1Free);
}

void show_process(ReportWriter& writer, const Process& process) {
  Text gpu_instance;
  Text compute_instance;
  Text pid;
  gpu_instance.set("%s", kNotAvailable);
  compute_instance.set("%s", kNotAvailable);
  if (process.gpu_instance != kNoInstance) gpu_instance.set("%u", process.gpu_instance);
  if (process.compute_instance != kNoInstance) compute_instance.set("%u", process.compute_instance);
  pid.set("%u", process.pid);
  writer.section(2, nullptr, "process_info");
  const unsigned depth = writer.xml() ? 3 : 2;
  const unsigned inner = 3;
  writer.value(depth, "GPU instance ID", "gpu_instance_id", gpu_instance.c_str());
  writer.value(depth, "Compute instance ID", "compute_instance_id", compute_instance.c_str());
  writer.value(depth, "Process ID", "pid", pid.c_str());
  writer.value(inner, "Type", "type", process.type);
  writer.value(inner, "Name", "process_name", process.name.c_str());
  writer.value(inner, "Used GPU Memory", "used_memory", process.memory.c_str());
}

void show_graphics_clocks(ReportWriter& writer, const Gpu& gpu, unsigned memory_mhz) {
  unsigned clocks[kMaxClocks] = {};
  unsigned known = kMaxClocks;
  if (call(gpu.session->nvml.nvmlDeviceGetSupportedGraphicsClocks, gpu.handle, memory_mhz, &known,
           clocks) != NVML_SUCCESS) {
    return;
  }
  for (unsigned i = 0; i < known && i < kMaxClocks; ++i) {
    megahertz(writer, 3, "Graphics", "supported_graphics_clock", clocks[i]);
  }
}

}  // namespace

void show_mig_part(ReportWriter& writer, const Gpu& gpu, bool) {
  MigDevices devices;
  read_mig_devices(gpu, devices);
  writer.section(1, nullptr, "mig_devices");
  if (devices.count == 0) writer.content(2, "None");
  for (unsigned i = 0; i < devices.count; ++i) report_mig_device(writer, devices.rows[i]);
}

void show_processes_part(ReportWriter& writer, const Gpu& gpu, bool) {
  Processes processes;
  read_processes(gpu, Contexts::All, processes);
  if (processes.count == 0 && !writer.xml()) {
    writer.value(1, "Processes", nullptr, "None");
    return;
  }
  writer.section(1, "Processes", "processes");
  const int column = writer.column();
  if (column > kProcessColumn) writer.set_column(kProcessColumn);
  for (unsigned i = 0; i < processes.count; ++i) show_process(writer, processes.rows[i]);
  writer.set_column(column);
}

void show_accounted_part(ReportWriter& writer, const Gpu&, bool selected) {
  if (writer.xml()) {
    writer.section(1, nullptr, "accounted_processes");
  } else if (selected) {
    writer.value(1, "Accounted Processes", nullptr, "None");
  }
}

void show_supported_clocks_part(ReportWriter& writer, const Gpu& gpu, bool selected) {
  if (!writer.xml() && !selected) return;
  unsigned clocks[kMaxClocks] = {};
  unsigned known = kMaxClocks;
  if (call(gpu.session->nvml.nvmlDeviceGetSupportedMemoryClocks, gpu.handle, &known, clocks) !=
      NVML_SUCCESS) {
    writer.value(1, "Supported Clocks", "supported_clocks", kNotAvailable);
    return;
  }
  writer.section(1, "Supported Clocks", "supported_clocks");
  for (unsigned i = 0; i < known && i < kMaxClocks; ++i) {
    writer.section(2, nullptr, "supported_mem_clock");
    megahertz(writer, writer.xml() ? 3 : 2, "Memory", "value", clocks[i]);
    show_graphics_clocks(writer, gpu, clocks[i]);
  }
}

}  // namespace smi
