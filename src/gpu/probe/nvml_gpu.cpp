// SPDX-License-Identifier: Apache-2.0
// Identity, memory, telemetry and health of one GPU.
#include "gpu/probe/nvml_gpu_internal.hpp"
#include "gpu/probe/nvml_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace gantry::probe {
namespace {

constexpr std::uint64_t kMaxReading = 100'000'000;  // milliwatts, degrees, percent: all far below

std::optional<int> reading(bool answered, unsigned value) {
  if (!answered || value > kMaxReading) return std::nullopt;
  return static_cast<int>(value);
}

template <std::size_t N, class Function>
std::string ask_text(Asking& asking, std::string_view name, Function function) {
  std::array<char, N> buffer{};
  if (!asking.ask(name, function, asking.device(), buffer.data(), static_cast<unsigned>(N)))
    return "";
  return text_of(buffer);
}
#define GANTRY_ASK_TEXT(asking, size, function) \
  ask_text<size>(asking, #function, (asking).nvml().function)

void read_pci(Asking& asking, model::Gpu& gpu) {
  nvmlPciInfo_t pci{};
  if (!GANTRY_ASK(asking, nvmlDeviceGetPciInfo_v3, asking.device(), &pci)) {
    gantryPciInfoV2_t old{};
    if (!GANTRY_ASK(asking, nvmlDeviceGetPciInfo_v2, asking.device(), &old)) return;
    pci.domain = old.domain;
    pci.bus = old.bus;
    pci.device = old.device;
    pci.pciDeviceId = old.pciDeviceId;
    pci.pciSubSystemId = old.pciSubSystemId;
  }
  const auto parsed = model::PciAddress::parse(text_of(pci.busId));
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

void read_kind(Asking& asking, model::Gpu& gpu) {
  nvmlBrandType_t brand = NVML_BRAND_UNKNOWN;
  if (GANTRY_ASK(asking, nvmlDeviceGetBrand, asking.device(), &brand))
    gpu.brand = brand_word(brand);
  int major = 0;
  int minor = 0;
  if (GANTRY_ASK(asking, nvmlDeviceGetCudaComputeCapability, asking.device(), &major, &minor) &&
      major > 0 && major < 100 && minor >= 0 && minor < 100) {
    gpu.compute_capability = {major, minor};
  }
  nvmlDeviceArchitecture_t architecture = NVML_DEVICE_ARCH_UNKNOWN;
  if (GANTRY_ASK(asking, nvmlDeviceGetArchitecture, asking.device(), &architecture)) {
    gpu.architecture = architecture_word(architecture);
  } else if (gpu.compute_capability) {
    gpu.architecture = architecture_of(*gpu.compute_capability);
  }
}

void read_modes(Asking& asking, model::Gpu& gpu) {
  nvmlEnableState_t persistence = NVML_FEATURE_DISABLED;
  if (GANTRY_ASK(asking, nvmlDeviceGetPersistenceMode, asking.device(), &persistence)) {
    gpu.persistence = persistence == NVML_FEATURE_ENABLED;
  }
  nvmlComputeMode_t compute = NVML_COMPUTEMODE_DEFAULT;
  if (GANTRY_ASK(asking, nvmlDeviceGetComputeMode, asking.device(), &compute)) {
    gpu.compute_mode = compute_mode_word(compute);
  }
  nvmlGpuVirtualizationMode_t virtualization = NVML_GPU_VIRTUALIZATION_MODE_NONE;
  if (GANTRY_ASK(asking, nvmlDeviceGetVirtualizationMode, asking.device(), &virtualization)) {
    gpu.virtualization = virtualization_word(virtualization);
  }
}

// What the driver wants done. Drivers before 565 know the reset status only.
void read_recovery_action(Asking& asking, HealthFacts& facts) {
  std::array<nvmlFieldValue_t, 2> fields{};
  fields[0].fieldId = NVML_FI_DEV_GET_GPU_RECOVERY_ACTION;
  fields[1].fieldId = NVML_FI_DEV_RESET_STATUS;
  const auto count = static_cast<int>(fields.size());
  if (!GANTRY_ASK(asking, nvmlDeviceGetFieldValues, asking.device(), count, fields.data())) return;
  const auto& action = fields[0];
  if (action.nvmlReturn == NVML_SUCCESS &&
      action.value.uiVal <= static_cast<unsigned>(RecoveryAction::RecoverImexDomain)) {
    facts.recovery_action = static_cast<RecoveryAction>(action.value.uiVal);
  }
  facts.reset_required = fields[1].nvmlReturn == NVML_SUCCESS && fields[1].value.uiVal == 1;
}

void read_clock_reasons(Asking& asking, HealthFacts& facts) {
  unsigned long long reasons = 0;
  if (!GANTRY_ASK(asking, nvmlDeviceGetCurrentClocksEventReasons, asking.device(), &reasons) &&
      !GANTRY_ASK(asking, nvmlDeviceGetCurrentClocksThrottleReasons, asking.device(), &reasons)) {
    return;
  }
  constexpr unsigned long long kThermal =
      nvmlClocksEventReasonSwThermalSlowdown | nvmlClocksThrottleReasonHwThermalSlowdown;
  facts.thermal_slowdown = (reasons & kThermal) != 0;
  facts.power_brake = (reasons & nvmlClocksThrottleReasonHwPowerBrakeSlowdown) != 0;
}

// "" on machines whose fabric ends at their own switches: they have no cluster.
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
void read_fabric(Asking& asking, HealthFacts& facts) {
  nvmlGpuFabricInfoV_t info{};
  info.version = nvmlGpuFabricInfo_v2;  // the oldest form: nothing newer is needed
  if (!GANTRY_ASK(asking, nvmlDeviceGetGpuFabricInfoV, asking.device(), &info)) {
    nvmlGpuFabricInfo_t old{};
    if (!GANTRY_ASK(asking, nvmlDeviceGetGpuFabricInfo, asking.device(), &old)) return;
    info.state = old.state;
    std::copy(std::begin(old.clusterUuid), std::end(old.clusterUuid), info.clusterUuid);
    info.cliqueId = old.cliqueId;
    info.status = old.status;
  }
  if (info.state == NVML_GPU_FABRIC_STATE_NOT_STARTED ||
      info.state == NVML_GPU_FABRIC_STATE_IN_PROGRESS) {
    facts.fabric =
        "the NVSwitch fabric is not ready for this GPU: `systemctl start nvidia-fabricmanager`, "
        "of the driver's version";
  } else if (info.state == NVML_GPU_FABRIC_STATE_COMPLETED && info.status != NVML_SUCCESS) {
    facts.fabric = driver::nvml_error(info.status, "joining the NVSwitch fabric").text();
  } else if (info.state == NVML_GPU_FABRIC_STATE_COMPLETED) {
    facts.fabric_clique = clique_of(info);
  }
}

}  // namespace

void read_identity(Asking& asking, model::Gpu& gpu) {
  gpu.uuid.text = GANTRY_ASK_TEXT(asking, NVML_DEVICE_UUID_V2_BUFFER_SIZE, nvmlDeviceGetUUID);
  gpu.name = GANTRY_ASK_TEXT(asking, NVML_DEVICE_NAME_V2_BUFFER_SIZE, nvmlDeviceGetName);
  read_pci(asking, gpu);
  unsigned minor = 0;
  if (GANTRY_ASK(asking, nvmlDeviceGetMinorNumber, asking.device(), &minor)) gpu.minor = minor;
  gpu.serial = GANTRY_ASK_TEXT(asking, NVML_DEVICE_SERIAL_BUFFER_SIZE, nvmlDeviceGetSerial);
  gpu.vbios =
      GANTRY_ASK_TEXT(asking, NVML_DEVICE_VBIOS_VERSION_BUFFER_SIZE, nvmlDeviceGetVbiosVersion);
  std::array<char, NVML_GSP_FIRMWARE_VERSION_BUF_SIZE> gsp{};
  if (GANTRY_ASK(asking, nvmlDeviceGetGspFirmwareVersion, asking.device(), gsp.data())) {
    gpu.gsp_firmware = text_of(gsp);
  }
  read_kind(asking, gpu);
  read_modes(asking, gpu);
}

void read_memory(Asking& asking, model::Gpu& gpu) {
  nvmlMemory_v2_t memory{};
  memory.version = nvmlMemory_v2;
  if (!GANTRY_ASK(asking, nvmlDeviceGetMemoryInfo_v2, asking.device(), &memory)) {
    nvmlMemory_t old{};
    if (!GANTRY_ASK(asking, nvmlDeviceGetMemoryInfo, asking.device(), &old)) return;
    memory.total = old.total;
    memory.free = old.free;
    memory.used = old.used;
  }
  gpu.memory_bytes = memory.total;
  gpu.telemetry.memory_used_bytes = memory.used;
  gpu.telemetry.memory_free_bytes = memory.free;
}

void read_load(Asking& asking, model::Telemetry& telemetry) {
  nvmlUtilization_t utilization{};
  bool answered = GANTRY_ASK(asking, nvmlDeviceGetUtilizationRates, asking.device(), &utilization);
  telemetry.utilization_percent = reading(answered, utilization.gpu);
  unsigned value = 0;
  answered = GANTRY_ASK(asking, nvmlDeviceGetPowerUsage, asking.device(), &value);
  telemetry.power_milliwatts = reading(answered, value);
}

void read_condition(Asking& asking, model::Telemetry& telemetry) {
  unsigned value = 0;
  bool answered =
      GANTRY_ASK(asking, nvmlDeviceGetTemperature, asking.device(), NVML_TEMPERATURE_GPU, &value);
  telemetry.temperature_celsius = reading(answered, value);
  answered = GANTRY_ASK(asking, nvmlDeviceGetEnforcedPowerLimit, asking.device(), &value);
  telemetry.power_limit_milliwatts = reading(answered, value);
  unsigned long long count = 0;
  if (GANTRY_ASK(asking, nvmlDeviceGetTotalEccErrors, asking.device(),
                 NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC, &count)) {
    telemetry.ecc_uncorrected_volatile = count;
  }
  if (GANTRY_ASK(asking, nvmlDeviceGetTotalEccErrors, asking.device(),
                 NVML_MEMORY_ERROR_TYPE_CORRECTED, NVML_VOLATILE_ECC, &count)) {
    telemetry.ecc_corrected_volatile = count;
  }
}

HealthFacts read_health_facts(Asking& asking) {
  HealthFacts facts;
  unsigned correctable = 0;
  unsigned uncorrectable = 0;
  unsigned pending = 0;
  unsigned failure = 0;
  if (GANTRY_ASK(asking, nvmlDeviceGetRemappedRows, asking.device(), &correctable, &uncorrectable,
                 &pending, &failure)) {
    facts.row_remap_pending = pending != 0;
    facts.row_remap_failure = failure != 0;
  } else {  // cards before Ampere retire pages instead
    nvmlEnableState_t retiring = NVML_FEATURE_DISABLED;
    if (GANTRY_ASK(asking, nvmlDeviceGetRetiredPagesPendingStatus, asking.device(), &retiring)) {
      facts.page_retirement_pending = retiring == NVML_FEATURE_ENABLED;
    }
  }
  read_recovery_action(asking, facts);
  read_clock_reasons(asking, facts);
  read_fabric(asking, facts);
  return facts;
}

}  // namespace gantry::probe
