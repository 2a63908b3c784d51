// SPDX-License-Identifier: Apache-2.0
// Identity, memory, telemetry and health of one GPU.
#include "gpu/model/fabric_reason.hpp"
#include "gpu/nvml/gpu_internal.hpp"
#include "gpu/probe/nvml_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace gantry::nvml {
namespace {

template <std::size_t N, class Function>
std::string query_text(DeviceQuery& query, std::string_view name, Function function) {
  std::array<char, N> buffer{};
  if (!query.ask(name, function, query.device(), buffer.data(), static_cast<unsigned>(N)))
    return "";
  return to_string(buffer);
}
#define GANTRY_QUERY_TEXT(query, size, function) \
  query_text<size>(query, #function, (query).nvml().function)

void read_pci(DeviceQuery& query, model::Gpu& gpu) {
  nvmlPciInfo_t pci{};
  if (!GANTRY_QUERY(query, nvmlDeviceGetPciInfo_v3, query.device(), &pci)) {
    gantryPciInfoV2_t old{};
    if (!GANTRY_QUERY(query, nvmlDeviceGetPciInfo_v2, query.device(), &old)) return;
    pci.domain = old.domain;
    pci.bus = old.bus;
    pci.device = old.device;
    pci.pciDeviceId = old.pciDeviceId;
    pci.pciSubSystemId = old.pciSubSystemId;
  }
  const auto parsed = model::PciAddress::parse(to_string(pci.busId));
  if (parsed) {
    gpu.pci = *parsed;
  } else if (pci.bus <= 0xff && pci.device <= 0x1f) {
    gpu.pci = {.domain = pci.domain,
               .bus = static_cast<std::uint8_t>(pci.bus),
               .device = static_cast<std::uint8_t>(pci.device)};
  }
  gpu.pci_device_id = pci.pciDeviceId;
  gpu.pci_subsystem_id = pci.pciSubSystemId;
}

void read_kind(DeviceQuery& query, model::Gpu& gpu) {
  nvmlBrandType_t brand = NVML_BRAND_UNKNOWN;
  if (GANTRY_QUERY(query, nvmlDeviceGetBrand, query.device(), &brand))
    gpu.brand = probe::brand_name(brand);
  int major = 0;
  int minor = 0;
  if (GANTRY_QUERY(query, nvmlDeviceGetCudaComputeCapability, query.device(), &major, &minor) &&
      major > 0 && major < 100 && minor >= 0 && minor < 100) {
    gpu.compute_capability = {major, minor};
  }
  nvmlDeviceArchitecture_t architecture = NVML_DEVICE_ARCH_UNKNOWN;
  if (GANTRY_QUERY(query, nvmlDeviceGetArchitecture, query.device(), &architecture)) {
    gpu.architecture = probe::architecture_name(architecture);
  } else if (gpu.compute_capability) {
    gpu.architecture = probe::architecture_of(*gpu.compute_capability);
  }
}

void read_modes(DeviceQuery& query, model::Gpu& gpu) {
  nvmlEnableState_t persistence = NVML_FEATURE_DISABLED;
  if (GANTRY_QUERY(query, nvmlDeviceGetPersistenceMode, query.device(), &persistence)) {
    gpu.persistence = persistence == NVML_FEATURE_ENABLED;
  }
  nvmlComputeMode_t compute = NVML_COMPUTEMODE_DEFAULT;
  if (GANTRY_QUERY(query, nvmlDeviceGetComputeMode, query.device(), &compute)) {
    gpu.compute_mode = probe::compute_mode_name(compute);
  }
  nvmlGpuVirtualizationMode_t virtualization = NVML_GPU_VIRTUALIZATION_MODE_NONE;
  if (GANTRY_QUERY(query, nvmlDeviceGetVirtualizationMode, query.device(), &virtualization)) {
    gpu.virtualization = probe::virtualization_name(virtualization);
  }
}

// The recovery action that the driver asks for. Drivers before 565 have only the reset status.
void read_recovery_action(DeviceQuery& query, probe::HealthFacts& facts) {
  std::array<nvmlFieldValue_t, 2> fields{};
  fields[0].fieldId = NVML_FI_DEV_GET_GPU_RECOVERY_ACTION;
  fields[1].fieldId = NVML_FI_DEV_RESET_STATUS;
  const auto count = static_cast<int>(fields.size());
  if (!GANTRY_QUERY(query, nvmlDeviceGetFieldValues, query.device(), count, fields.data())) return;
  const auto& action = fields[0];
  if (action.nvmlReturn == NVML_SUCCESS &&
      action.value.uiVal <= static_cast<unsigned>(probe::RecoveryAction::RecoverImexDomain)) {
    facts.recovery_action = static_cast<probe::RecoveryAction>(action.value.uiVal);
  }
  facts.reset_required = fields[1].nvmlReturn == NVML_SUCCESS && fields[1].value.uiVal == 1;
}

void read_clock_reasons(DeviceQuery& query, probe::HealthFacts& facts) {
  unsigned long long reasons = 0;
  if (!GANTRY_QUERY(query, nvmlDeviceGetCurrentClocksEventReasons, query.device(), &reasons) &&
      !GANTRY_QUERY(query, nvmlDeviceGetCurrentClocksThrottleReasons, query.device(), &reasons)) {
    return;
  }
  constexpr unsigned long long kThermal =
      nvmlClocksEventReasonSwThermalSlowdown | nvmlClocksThrottleReasonHwThermalSlowdown;
  facts.thermal_slowdown = (reasons & kThermal) != 0;
  facts.power_brake = (reasons & nvmlClocksThrottleReasonHwPowerBrakeSlowdown) != 0;
}

// "" on machines whose fabric does not leave the machine: they have no cluster.
std::string clique_of(const nvmlGpuFabricInfoV_t& info) {
  const auto& bytes = info.clusterUuid;
  if (std::all_of(std::begin(bytes), std::end(bytes), [](unsigned char b) { return b == 0; }))
    return "";
  std::string text;
  for (std::size_t i = 0; i < std::size(bytes); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", bytes[i]);
  }
  return fmt::format("{}.{}", text, info.cliqueId);
}

// Without a ready fabric, CUDA answers "system not yet initialized" on NVSwitch machines.
void read_fabric(DeviceQuery& query, probe::HealthFacts& facts) {
  nvmlGpuFabricInfoV_t info{};
  info.version = nvmlGpuFabricInfo_v2;  // the oldest form is enough
  if (!GANTRY_QUERY(query, nvmlDeviceGetGpuFabricInfoV, query.device(), &info)) {
    nvmlGpuFabricInfo_t old{};
    if (!GANTRY_QUERY(query, nvmlDeviceGetGpuFabricInfo, query.device(), &old)) return;
    info.state = old.state;
    std::copy(std::begin(old.clusterUuid), std::end(old.clusterUuid), info.clusterUuid);
    info.cliqueId = old.cliqueId;
    info.status = old.status;
  }
  if (info.state == NVML_GPU_FABRIC_STATE_NOT_STARTED ||
      info.state == NVML_GPU_FABRIC_STATE_IN_PROGRESS) {
    facts.fabric = fmt::format(
        "{} is not ready for this GPU: `systemctl start nvidia-fabricmanager`, of the driver's "
        "version",
        model::kNvSwitchFabric);
  } else if (info.state == NVML_GPU_FABRIC_STATE_COMPLETED && info.status != NVML_SUCCESS) {
    facts.fabric =
        nvml_error(info.status, fmt::format("joining {}", model::kNvSwitchFabric)).text();
  } else if (info.state == NVML_GPU_FABRIC_STATE_COMPLETED) {
    facts.fabric_clique = clique_of(info);
  }
}

}  // namespace

void read_identity(DeviceQuery& query, model::Gpu& gpu) {
  gpu.uuid.text = GANTRY_QUERY_TEXT(query, NVML_DEVICE_UUID_V2_BUFFER_SIZE, nvmlDeviceGetUUID);
  gpu.name = GANTRY_QUERY_TEXT(query, NVML_DEVICE_NAME_V2_BUFFER_SIZE, nvmlDeviceGetName);
  read_pci(query, gpu);
  unsigned minor = 0;
  if (GANTRY_QUERY(query, nvmlDeviceGetMinorNumber, query.device(), &minor)) gpu.minor = minor;
  gpu.serial = GANTRY_QUERY_TEXT(query, NVML_DEVICE_SERIAL_BUFFER_SIZE, nvmlDeviceGetSerial);
  gpu.vbios =
      GANTRY_QUERY_TEXT(query, NVML_DEVICE_VBIOS_VERSION_BUFFER_SIZE, nvmlDeviceGetVbiosVersion);
  std::array<char, NVML_GSP_FIRMWARE_VERSION_BUF_SIZE> gsp{};
  if (GANTRY_QUERY(query, nvmlDeviceGetGspFirmwareVersion, query.device(), gsp.data())) {
    gpu.gsp_firmware = to_string(gsp);
  }
  read_kind(query, gpu);
  read_modes(query, gpu);
}

void read_memory(DeviceQuery& query, model::Gpu& gpu) {
  nvmlMemory_v2_t memory{};
  memory.version = nvmlMemory_v2;
  if (!GANTRY_QUERY(query, nvmlDeviceGetMemoryInfo_v2, query.device(), &memory)) {
    nvmlMemory_t old{};
    if (!GANTRY_QUERY(query, nvmlDeviceGetMemoryInfo, query.device(), &old)) return;
    memory.total = old.total;
    memory.free = old.free;
    memory.used = old.used;
  }
  gpu.memory_bytes = memory.total;
  gpu.telemetry.memory_used_bytes = memory.used;
  gpu.telemetry.memory_free_bytes = memory.free;
}

void read_load(DeviceQuery& query, model::Telemetry& telemetry) {
  nvmlUtilization_t utilization{};
  bool answered = GANTRY_QUERY(query, nvmlDeviceGetUtilizationRates, query.device(), &utilization);
  telemetry.utilization_percent = plausible_reading(answered, utilization.gpu);
  unsigned value = 0;
  answered = GANTRY_QUERY(query, nvmlDeviceGetPowerUsage, query.device(), &value);
  telemetry.power_milliwatts = plausible_reading(answered, value);
}

void read_condition(DeviceQuery& query, model::Telemetry& telemetry) {
  unsigned value = 0;
  bool answered =
      GANTRY_QUERY(query, nvmlDeviceGetTemperature, query.device(), NVML_TEMPERATURE_GPU, &value);
  telemetry.temperature_celsius = plausible_reading(answered, value);
  answered = GANTRY_QUERY(query, nvmlDeviceGetEnforcedPowerLimit, query.device(), &value);
  telemetry.power_limit_milliwatts = plausible_reading(answered, value);
  unsigned long long count = 0;
  if (GANTRY_QUERY(query, nvmlDeviceGetTotalEccErrors, query.device(),
                   NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC, &count)) {
    telemetry.ecc_uncorrected_volatile = count;
  }
  if (GANTRY_QUERY(query, nvmlDeviceGetTotalEccErrors, query.device(),
                   NVML_MEMORY_ERROR_TYPE_CORRECTED, NVML_VOLATILE_ECC, &count)) {
    telemetry.ecc_corrected_volatile = count;
  }
}

probe::HealthFacts read_health_facts(DeviceQuery& query) {
  probe::HealthFacts facts;
  unsigned correctable = 0;
  unsigned uncorrectable = 0;
  unsigned pending = 0;
  unsigned failure = 0;
  if (GANTRY_QUERY(query, nvmlDeviceGetRemappedRows, query.device(), &correctable, &uncorrectable,
                   &pending, &failure)) {
    facts.row_remap_pending = pending != 0;
    facts.row_remap_failure = failure != 0;
  } else {  // cards before Ampere retire pages instead
    nvmlEnableState_t retiring = NVML_FEATURE_DISABLED;
    if (GANTRY_QUERY(query, nvmlDeviceGetRetiredPagesPendingStatus, query.device(), &retiring)) {
      facts.page_retirement_pending = retiring == NVML_FEATURE_ENABLED;
    }
  }
  read_recovery_action(query, facts);
  read_clock_reasons(query, facts);
  read_fabric(query, facts);
  return facts;
}

}  // namespace gantry::nvml
