// SPDX-License-Identifier: Apache-2.0
//
// nvidia-smi -q, with and without -x.
#include "sim/nvidia-smi/commands.hpp"
#include "sim/nvidia-smi/report_table.hpp"

#include <strings.h>

namespace smi {
namespace {

struct DisplayName {
  const char* name;
  uint32_t flag;
};

constexpr DisplayName kDisplayNames[] = {
    {"MEMORY", kMemory},
    {"UTILIZATION", kUtilization},
    {"ECC", kEcc},
    {"TEMPERATURE", kTemperature},
    {"POWER", kPower},
    {"CLOCK", kClock},
    {"COMPUTE", kCompute},
    {"PIDS", kPids},
    {"PERFORMANCE", kPerformance},
    {"SUPPORTED_CLOCKS", kSupportedClocks},
    {"PAGE_RETIREMENT", kPageRetirement},
    {"ACCOUNTING", kAccounting},
    {"ENCODER_STATS", kEncoderStats},
    {"SUPPORTED_GPU_TARGET_TEMP", kTargetTemperature},
    {"VOLTAGE", kVoltage},
    {"FBC_STATS", kFbcStats},
    {"ROW_REMAPPER", kRowRemapper},
    {"GSP_FIRMWARE_VERSION", kGspFirmware},
    {"POWER_SMOOTHING", kPowerSmoothing},
    {"POWER_PROFILES", kPowerProfiles},
};

bool parse_display(const char* list, uint32_t* out) {
  Text word;
  while (next_item(&list, word)) {
    uint32_t flag = 0;
    for (const DisplayName& known : kDisplayNames) {
      if (strcasecmp(known.name, word.c_str()) == 0) flag = known.flag;
    }
    if (flag == 0) return false;
    *out |= flag;
  }
  return *out != 0;
}

int column_for(const Session& session) {
  return session.at_least(560) ? 55 : session.at_least(450) ? 42 : 36;
}

bool is_shown(const Row& row, const Gpu& gpu, uint32_t display) {
  const unsigned driver = gpu.session->driver_major;
  if (driver < row.since || driver > row.until) return false;
  if (display == 0 && row.style == Style::OnlySelected) return false;
  if (display != 0 && row.depth == 1 && (row.display & display) == 0) return false;
  return row.when == nullptr || row.when(gpu);
}

void write_row(ReportWriter& writer, const Row& row, const Gpu& gpu) {
  if (row.read == nullptr) {
    writer.section(row.depth, row.label, row.tag);
    return;
  }
  Text value;
  row.read(gpu, row.arg, value);
  const char* text = value.c_str();
  if (row.style == Style::BareHexInXml && writer.xml() && strncmp(text, "0x", 2) == 0) text += 2;
  const unsigned deeper = row.style == Style::DeeperInText && !writer.xml() ? 1 : 0;
  writer.value(row.depth + deeper, row.label, row.tag, text);
}

void write_gpu(ReportWriter& writer, const Gpu& gpu, uint32_t display) {
  Text heading;
  heading.set("GPU %s", gpu.bus_id);
  writer.section(0, heading.c_str(), "gpu", gpu.bus_id);
  unsigned skip_below = 99;
  const Table table = report_table();
  for (size_t i = 0; i < table.count; ++i) {
    const Row& row = table.rows[i];
    if (row.depth > skip_below) continue;
    skip_below = 99;
    if (!is_shown(row, gpu, display)) {
      skip_below = row.depth;
    } else if (row.part != nullptr) {
      row.part(writer, gpu, display != 0);
    } else {
      write_row(writer, row, gpu);
    }
  }
  writer.end(0);
  putchar('\n');
}

void write_head(ReportWriter& writer, const Session& session) {
  Text cuda;
  cuda.set("%u.%u", session.cuda_version / 1000, session.cuda_version % 1000 / 10);
  Text count;
  count.set("%u", session.attached);
  writer.value(0, "Timestamp", "timestamp", clock_text().c_str());
  writer.value(0, "Driver Version", "driver_version", session.driver_version.c_str());
  if (session.driver_major >= 410) writer.value(0, "CUDA Version", "cuda_version", cuda.c_str());
  if (!writer.xml()) putchar('\n');
  writer.value(0, "Attached GPUs", "attached_gpus", count.c_str());
}

unsigned dtd_version(const Session& session) {
  return session.at_least(580) ? 13 : session.at_least(525) ? 12 : session.at_least(450) ? 11 : 10;
}

}  // namespace

int query_text(Session& session, const char* display) {
  uint32_t chosen = 0;
  if (display != nullptr && !parse_display(display, &chosen)) {
    puts("Failed to parse --display/-d flags");
    return kUsage;
  }
  ReportWriter writer(ReportWriter::Form::Text, column_for(session));
  printf("\n==============NVSMI LOG==============\n\n");
  write_head(writer, session);
  for (unsigned i = 0; i < session.count; ++i) write_gpu(writer, session.gpus[i], chosen);
  return kDone;
}

int query_xml(Session& session) {
  ReportWriter writer(ReportWriter::Form::Xml, 0);
  printf("<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v%u.dtd\">\n",
         dtd_version(session));
  puts("<nvidia_smi_log>");
  write_head(writer, session);
  for (unsigned i = 0; i < session.count; ++i) write_gpu(writer, session.gpus[i], 0);
  puts("</nvidia_smi_log>");
  return kDone;
}

}  // namespace smi
