// SPDX-License-Identifier: Apache-2.0
//
// nvidia-smi dmon: a row of numbers per GPU and second.
#include "sim/nvidia-smi/commands.hpp"
#include "sim/nvidia-smi/monitor.hpp"
#include "sim/nvidia-smi/readings.hpp"

namespace smi {
namespace {

// False: the card has no such number, and the column shows "-".
using Number = bool (*)(const Gpu& gpu, unsigned long long& out);

bool power(const Gpu& gpu, unsigned long long& out) {
  unsigned milliwatts = 0;
  if (call(nvml_of(gpu).nvmlDeviceGetPowerUsage, gpu.handle, &milliwatts) != NVML_SUCCESS)
    return false;
  out = (milliwatts + 500) / 1000;
  return true;
}

bool gpu_celsius(const Gpu& gpu, unsigned long long& out) {
  unsigned value = 0;
  const bool known = call(nvml_of(gpu).nvmlDeviceGetTemperature, gpu.handle, NVML_TEMPERATURE_GPU,
                          &value) == NVML_SUCCESS;
  out = value;
  return known;
}

bool memory_celsius(const Gpu& gpu, unsigned long long& out) {
  nvmlFieldValue_t value = {};
  value.fieldId = NVML_FI_DEV_MEMORY_TEMP;
  if (call(nvml_of(gpu).nvmlDeviceGetFieldValues, gpu.handle, 1, &value) != NVML_SUCCESS ||
      value.nvmlReturn != NVML_SUCCESS || value.value.uiVal == 0) {
    return false;
  }
  out = value.value.uiVal;
  return true;
}

bool rates(const Gpu& gpu, nvmlUtilization_t& out) {
  return call(nvml_of(gpu).nvmlDeviceGetUtilizationRates, gpu.handle, &out) == NVML_SUCCESS;
}

bool sm_load(const Gpu& gpu, unsigned long long& out) {
  nvmlUtilization_t now = {};
  const bool known = rates(gpu, now);
  out = now.gpu;
  return known;
}

bool memory_load(const Gpu& gpu, unsigned long long& out) {
  nvmlUtilization_t now = {};
  const bool known = rates(gpu, now);
  out = now.memory;
  return known;
}

template <auto Function>
bool engine_load(const Gpu& gpu, unsigned long long& out) {
  unsigned percent = 0;
  unsigned period = 0;
  const bool known = call(nvml_of(gpu).*Function, gpu.handle, &percent, &period) == NVML_SUCCESS;
  out = percent;
  return known;
}

template <nvmlClockType_t Type>
bool clock_mhz(const Gpu& gpu, unsigned long long& out) {
  unsigned mhz = 0;
  const bool known =
      call(nvml_of(gpu).nvmlDeviceGetClockInfo, gpu.handle, Type, &mhz) == NVML_SUCCESS;
  out = mhz;
  return known;
}

template <nvmlPerfPolicyType_t Policy>
bool violation(const Gpu& gpu, unsigned long long& out) {
  nvmlViolationTime_t time = {};
  const bool known =
      call(nvml_of(gpu).nvmlDeviceGetViolationStatus, gpu.handle, Policy, &time) == NVML_SUCCESS;
  out = time.violationTime;
  return known;
}

bool memory_used(const Gpu& gpu, unsigned long long& out) {
  nvmlMemory_v2_t memory = {};
  memory.version = nvmlMemory_v2;
  if (call(nvml_of(gpu).nvmlDeviceGetMemoryInfo_v2, gpu.handle, &memory) == NVML_SUCCESS) {
    out = mebibytes(memory.used);
    return true;
  }
  nvmlMemory_t old = {};
  const bool known = call(nvml_of(gpu).nvmlDeviceGetMemoryInfo, gpu.handle, &old) == NVML_SUCCESS;
  out = mebibytes(old.used);
  return known;
}

bool bar1_used(const Gpu& gpu, unsigned long long& out) {
  nvmlBAR1Memory_t memory = {};
  const bool known =
      call(nvml_of(gpu).nvmlDeviceGetBAR1MemoryInfo, gpu.handle, &memory) == NVML_SUCCESS;
  out = mebibytes(memory.bar1Used);
  return known;
}

bool protected_used(const Gpu& gpu, unsigned long long& out) {
  nvmlMemory_t memory = {};
  const bool known = call(nvml_of(gpu).nvmlDeviceGetConfComputeProtectedMemoryUsage, gpu.handle,
                          &memory) == NVML_SUCCESS;
  out = mebibytes(memory.used);
  return known;
}

template <nvmlMemoryErrorType_t Type>
bool ecc_errors(const Gpu& gpu, unsigned long long& out) {
  return call(nvml_of(gpu).nvmlDeviceGetTotalEccErrors, gpu.handle, Type, NVML_AGGREGATE_ECC,
              &out) == NVML_SUCCESS;
}

bool pci_replays(const Gpu& gpu, unsigned long long& out) {
  unsigned count = 0;
  const bool known =
      call(nvml_of(gpu).nvmlDeviceGetPcieReplayCounter, gpu.handle, &count) == NVML_SUCCESS;
  out = count;
  return known;
}

template <nvmlPcieUtilCounter_t Counter>
bool pci_traffic(const Gpu& gpu, unsigned long long& out) {
  unsigned kilobytes = 0;
  const bool known = call(nvml_of(gpu).nvmlDeviceGetPcieThroughput, gpu.handle, Counter,
                          &kilobytes) == NVML_SUCCESS;
  out = kilobytes / 1024;
  return known;
}

struct DmonColumn {
  const char* name;
  const char* unit;
  Number read;
  unsigned since;  // driver branch
  char group;      // letter of -s
};

constexpr DmonColumn kDmonColumns[] = {
    {"pwr", "W", power, 0, 'p'},
    {"gtemp", "C", gpu_celsius, 0, 'p'},
    {"mtemp", "C", memory_celsius, 0, 'p'},
    {"sm", "%", sm_load, 0, 'u'},
    {"mem", "%", memory_load, 0, 'u'},
    {"enc", "%", engine_load<&Nvml::nvmlDeviceGetEncoderUtilization>, 0, 'u'},
    {"dec", "%", engine_load<&Nvml::nvmlDeviceGetDecoderUtilization>, 0, 'u'},
    {"jpg", "%", engine_load<&Nvml::nvmlDeviceGetJpgUtilization>, 535, 'u'},
    {"ofa", "%", engine_load<&Nvml::nvmlDeviceGetOfaUtilization>, 535, 'u'},
    {"mclk", "MHz", clock_mhz<NVML_CLOCK_MEM>, 0, 'c'},
    {"pclk", "MHz", clock_mhz<NVML_CLOCK_SM>, 0, 'c'},
    {"pviol", "%", violation<NVML_PERF_POLICY_POWER>, 0, 'v'},
    {"tviol", "bool", violation<NVML_PERF_POLICY_THERMAL>, 0, 'v'},
    {"fb", "MB", memory_used, 0, 'm'},
    {"bar1", "MB", bar1_used, 0, 'm'},
    {"ccpm", "MB", protected_used, 535, 'm'},
    {"sbecc", "errs", ecc_errors<NVML_MEMORY_ERROR_TYPE_CORRECTED>, 0, 'e'},
    {"dbecc", "errs", ecc_errors<NVML_MEMORY_ERROR_TYPE_UNCORRECTED>, 0, 'e'},
    {"pci", "errs", pci_replays, 0, 'e'},
    {"rxpci", "MB/s", pci_traffic<NVML_PCIE_UTIL_RX_BYTES>, 0, 't'},
    {"txpci", "MB/s", pci_traffic<NVML_PCIE_UTIL_TX_BYTES>, 0, 't'},
};

bool is_column_shown(const DmonColumn& column, const Session& session,
                     const MonitorOptions& options) {
  const char* metrics = options.metrics != nullptr ? options.metrics : "puc";
  return strchr(metrics, column.group) != nullptr && session.at_least(column.since);
}

void end_line(const Session& session) {
  puts(session.at_least(535) ? " " : "");
}

void dmon_header(const Session& session, const MonitorOptions& options) {
  const int width = column_width(session);
  print_heading(options, "gpu", "names");
  for (const DmonColumn& column : kDmonColumns) {
    if (is_column_shown(column, session, options)) printf(" %*s", width, column.name);
  }
  end_line(session);
  print_heading(options, "Idx", "units");
  for (const DmonColumn& column : kDmonColumns) {
    if (is_column_shown(column, session, options)) printf(" %*s", width, column.unit);
  }
  end_line(session);
}

void dmon_row(const Gpu& gpu, const MonitorOptions& options) {
  const Session& session = *gpu.session;
  const int width = column_width(session);
  print_stamp(options);
  printf("%5u", gpu.index);
  for (const DmonColumn& column : kDmonColumns) {
    if (!is_column_shown(column, session, options)) continue;
    unsigned long long value = 0;
    if (column.read(gpu, value)) {
      printf(" %*llu", width, value);
    } else {
      printf(" %*s", width, "-");
    }
  }
  end_line(session);
}

}  // namespace

int dmon(Session& session, int argc, char** argv) {
  MonitorOptions options;
  const int parsed = parse_monitor(argc, argv, "dmon", "pucvmet", options);
  if (parsed != kDone) return parsed;
  if (options.help) {
    fputs(
        "    dmon -- A row of numbers for each GPU, again and again.\n\n"
        "    Usage: nvidia-smi dmon [options]\n\n"
        "    -i   --id         These GPUs: index, UUID or PCI address, separated by commas.\n"
        "    -d   --delay      Seconds between rows; default 1.\n"
        "    -c   --count      Rows for each GPU, then the end.\n"
        "    -s   --select     Columns: p power and temperature, u utilization, c clocks,\n"
        "                      v violations, m memory, e errors, t PCIe; default puc.\n"
        "    -o   --options    D the date, T the time of each row.\n"
        "    -f   --filename   Write to a file.\n",
        stdout);
    return kDone;
  }
  return run_monitor(session, options, {dmon_header, dmon_row});
}

}  // namespace smi
