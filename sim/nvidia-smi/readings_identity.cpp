// SPDX-License-Identifier: Apache-2.0
#include "sim/nvidia-smi/readings.hpp"

#include <sys/time.h>
#include <time.h>

namespace smi {
namespace {

template <class Function>
void read_text(Function* function, const Gpu& gpu, Text& out) {
  char text[NVML_DEVICE_NAME_V2_BUFFER_SIZE] = {};
  const nvmlReturn_t error = call(function, gpu.handle, text, static_cast<unsigned>(sizeof text));
  out.set("%s", error == NVML_SUCCESS && text[0] != '\0' ? text : kNotAvailable);
}

template <class Function>
bool read_number(Function* function, const Gpu& gpu, unsigned* out) {
  return call(function, gpu.handle, out) == NVML_SUCCESS;
}

bool read_pci(const Gpu& gpu, nvmlPciInfo_t* pci) {
  return call(nvml_of(gpu).nvmlDeviceGetPciInfo_v3, gpu.handle, pci) == NVML_SUCCESS;
}

bool read_pci_class(const Gpu& gpu, nvmlPciInfoExt_v1_t* pci) {
  pci->version = nvmlPciInfoExt_v1;
  return call(nvml_of(gpu).nvmlDeviceGetPciInfoExt, gpu.handle, pci) == NVML_SUCCESS;
}

const char* brand_words(nvmlBrandType_t brand) {
  switch (brand) {
    case NVML_BRAND_QUADRO: return "Quadro";
    case NVML_BRAND_TESLA: return "Tesla";
    case NVML_BRAND_NVS: return "NVS";
    case NVML_BRAND_GRID: return "Grid";
    case NVML_BRAND_GEFORCE: return "GeForce";
    case NVML_BRAND_TITAN: return "Titan";
    case NVML_BRAND_NVIDIA_VAPPS: return "NVIDIA Virtual Applications";
    case NVML_BRAND_NVIDIA_VPC: return "NVIDIA Virtual PC";
    case NVML_BRAND_NVIDIA_VCS: return "NVIDIA Virtual Compute Server";
    case NVML_BRAND_NVIDIA_VWS: return "NVIDIA RTX Virtual Workstation";
    case NVML_BRAND_NVIDIA_CLOUD_GAMING: return "NVIDIA Cloud Gaming";
    case NVML_BRAND_QUADRO_RTX: return "Quadro RTX";
    case NVML_BRAND_NVIDIA_RTX: return "NVIDIA RTX";
    case NVML_BRAND_NVIDIA: return "NVIDIA";
    case NVML_BRAND_GEFORCE_RTX: return "GeForce RTX";
    case NVML_BRAND_TITAN_RTX: return "Titan RTX";
    default: return "Unknown";
  }
}

const char* architecture_words(nvmlDeviceArchitecture_t architecture) {
  switch (architecture) {
    case NVML_DEVICE_ARCH_KEPLER: return "Kepler";
    case NVML_DEVICE_ARCH_MAXWELL: return "Maxwell";
    case NVML_DEVICE_ARCH_PASCAL: return "Pascal";
    case NVML_DEVICE_ARCH_VOLTA: return "Volta";
    case NVML_DEVICE_ARCH_TURING: return "Turing";
    case NVML_DEVICE_ARCH_AMPERE: return "Ampere";
    case NVML_DEVICE_ARCH_ADA: return "Ada Lovelace";
    case NVML_DEVICE_ARCH_HOPPER: return "Hopper";
    case NVML_DEVICE_ARCH_BLACKWELL: return "Blackwell";
    default: return "Unknown";
  }
}

}  // namespace

const char* field_or(const Gpu& gpu, const char* key, const char* otherwise) {
  if (nvml_of(gpu).field == nullptr) return otherwise;
  const char* text = nvml_of(gpu).field(gpu.handle, key);
  return text != nullptr && text[0] != '\0' ? text : otherwise;
}

void field(const Gpu& gpu, const Arg& arg, Text& out) {
  out.set("%s", arg.key != nullptr ? field_or(gpu, arg.key, arg.otherwise) : arg.otherwise);
}

void product_name(const Gpu& gpu, const Arg&, Text& out) {
  read_text(nvml_of(gpu).nvmlDeviceGetName, gpu, out);
}

void product_brand(const Gpu& gpu, const Arg&, Text& out) {
  nvmlBrandType_t brand = NVML_BRAND_UNKNOWN;
  call(nvml_of(gpu).nvmlDeviceGetBrand, gpu.handle, &brand);
  out.set("%s", brand_words(brand));
}

void architecture(const Gpu& gpu, const Arg&, Text& out) {
  nvmlDeviceArchitecture_t value = NVML_DEVICE_ARCH_UNKNOWN;
  call(nvml_of(gpu).nvmlDeviceGetArchitecture, gpu.handle, &value);
  out.set("%s", architecture_words(value));
}

void uuid(const Gpu& gpu, const Arg&, Text& out) {
  read_text(nvml_of(gpu).nvmlDeviceGetUUID, gpu, out);
}

void serial(const Gpu& gpu, const Arg&, Text& out) {
  read_text(nvml_of(gpu).nvmlDeviceGetSerial, gpu, out);
}

void pdi(const Gpu& gpu, const Arg&, Text& out) {
  nvmlPdi_t value = {};
  value.version = nvmlPdi_v1;
  const bool known = call(nvml_of(gpu).nvmlDeviceGetPdi, gpu.handle, &value) == NVML_SUCCESS;
  if (known) {
    out.set("0x%llx", value.value);
  } else {
    out.set("%s", kNotAvailable);
  }
}

void minor_number(const Gpu& gpu, const Arg&, Text& out) {
  unsigned value = 0;
  const bool known = read_number(nvml_of(gpu).nvmlDeviceGetMinorNumber, gpu, &value);
  known ? out.set("%u", value) : out.set("%s", kNotAvailable);
}

void vbios(const Gpu& gpu, const Arg&, Text& out) {
  read_text(nvml_of(gpu).nvmlDeviceGetVbiosVersion, gpu, out);
}

void multi_board(const Gpu& gpu, const Arg&, Text& out) {
  unsigned value = 0;
  const bool known = read_number(nvml_of(gpu).nvmlDeviceGetMultiGpuBoard, gpu, &value);
  out.set("%s", !known ? kNotAvailable : value != 0 ? "Yes" : "No");
}

void board_id(const Gpu& gpu, const Arg&, Text& out) {
  unsigned value = 0;
  const bool known = read_number(nvml_of(gpu).nvmlDeviceGetBoardId, gpu, &value);
  known ? out.set("0x%x", value) : out.set("%s", kNotAvailable);
}

void board_part(const Gpu& gpu, const Arg&, Text& out) {
  read_text(nvml_of(gpu).nvmlDeviceGetBoardPartNumber, gpu, out);
}

void gpu_part(const Gpu& gpu, const Arg&, Text& out) {
  out.set("%s", field_or(gpu, "gpu_part_number", kNotAvailable));
}

void module_id(const Gpu& gpu, const Arg&, Text& out) {
  unsigned value = 0;
  const bool known = read_number(nvml_of(gpu).nvmlDeviceGetModuleId, gpu, &value);
  known ? out.set("%u", value) : out.set("%s", kNotAvailable);
}

void inforom(const Gpu& gpu, const Arg& arg, Text& out) {
  if (arg.which < 0) {
    read_text(nvml_of(gpu).nvmlDeviceGetInforomImageVersion, gpu, out);
    return;
  }
  char text[NVML_DEVICE_INFOROM_VERSION_BUFFER_SIZE] = {};
  const nvmlReturn_t error =
      call(nvml_of(gpu).nvmlDeviceGetInforomVersion, gpu.handle,
           static_cast<nvmlInforomObject_t>(arg.which), text, static_cast<unsigned>(sizeof text));
  out.set("%s", error == NVML_SUCCESS && text[0] != '\0' ? text : kNotAvailable);
}

void virtualization(const Gpu& gpu, const Arg&, Text& out) {
  nvmlGpuVirtualizationMode_t mode = NVML_GPU_VIRTUALIZATION_MODE_NONE;
  if (call(nvml_of(gpu).nvmlDeviceGetVirtualizationMode, gpu.handle, &mode) != NVML_SUCCESS) {
    out.set("%s", kNotAvailable);
    return;
  }
  switch (mode) {
    case NVML_GPU_VIRTUALIZATION_MODE_PASSTHROUGH: out.set("Pass-Through"); break;
    case NVML_GPU_VIRTUALIZATION_MODE_VGPU: out.set("VGPU"); break;
    case NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU: out.set("Host VGPU"); break;
    case NVML_GPU_VIRTUALIZATION_MODE_HOST_VSGA: out.set("Host VSGA"); break;
    default: out.set("None"); break;
  }
}

void gsp_version(const Gpu& gpu, const Arg&, Text& out) {
  char text[NVML_GSP_FIRMWARE_VERSION_BUF_SIZE] = {};
  const nvmlReturn_t error = call(nvml_of(gpu).nvmlDeviceGetGspFirmwareVersion, gpu.handle, text);
  out.set("%s", error == NVML_SUCCESS && text[0] != '\0' ? text : kNotAvailable);
}

void gsp_mode(const Gpu& gpu, const Arg& arg, Text& out) {
  unsigned enabled = 0;
  unsigned by_default = 0;
  if (call(nvml_of(gpu).nvmlDeviceGetGspFirmwareMode, gpu.handle, &enabled, &by_default) !=
      NVML_SUCCESS) {
    out.set("%s", kNotAvailable);
    return;
  }
  out.set("%s", (arg.which == 0 ? enabled : by_default) != 0 ? "Enabled" : "Disabled");
}

void pci(const Gpu& gpu, const Arg& arg, Text& out) {
  nvmlPciInfo_t info = {};
  nvmlPciInfoExt_v1_t classes = {};
  const auto part = static_cast<PciPart>(arg.which);
  const bool is_class = part == PciPart::BaseClass || part == PciPart::SubClass;
  if (is_class ? !read_pci_class(gpu, &classes) : !read_pci(gpu, &info)) {
    out.set("%s", is_class ? field_or(gpu, "pci.class", kNotAvailable) : kNotAvailable);
    return;
  }
  switch (part) {
    case PciPart::Domain: out.set("0x%04X", info.domain); break;
    case PciPart::Bus: out.set("0x%02X", info.bus); break;
    case PciPart::Device: out.set("0x%02X", info.device); break;
    case PciPart::BaseClass: out.set("0x%X", classes.baseClass); break;
    case PciPart::SubClass: out.set("0x%X", classes.subClass); break;
    case PciPart::Id: out.set("0x%08X", info.pciDeviceId); break;
    case PciPart::SubsystemId: out.set("0x%08X", info.pciSubSystemId); break;
    case PciPart::BusId: out.set("%s", gpu.bus_id); break;
  }
}

void link(const Gpu& gpu, const Arg& arg, Text& out) {
  const Nvml& nvml = nvml_of(gpu);
  unsigned value = 0;
  bool known = false;
  switch (static_cast<Link>(arg.which)) {
    case Link::GenMax:
      known = read_number(nvml.nvmlDeviceGetMaxPcieLinkGeneration, gpu, &value);
      break;
    case Link::GenGpuMax:
      known = read_number(nvml.nvmlDeviceGetGpuMaxPcieLinkGeneration, gpu, &value) ||
              read_number(nvml.nvmlDeviceGetMaxPcieLinkGeneration, gpu, &value);
      break;
    case Link::GenCurrent:
    case Link::GenGpuCurrent:
      known = read_number(nvml.nvmlDeviceGetCurrPcieLinkGeneration, gpu, &value);
      break;
    case Link::WidthMax:
      known = read_number(nvml.nvmlDeviceGetMaxPcieLinkWidth, gpu, &value);
      break;
    case Link::WidthCurrent:
      known = read_number(nvml.nvmlDeviceGetCurrPcieLinkWidth, gpu, &value);
      break;
  }
  const bool width = arg.which >= static_cast<int>(Link::WidthMax);
  known ? out.set(width ? "%ux" : "%u", value) : out.set("%s", kNotAvailable);
}

void compute_capability(const Gpu& gpu, const Arg&, Text& out) {
  int major = 0;
  int minor = 0;
  const nvmlReturn_t error =
      call(nvml_of(gpu).nvmlDeviceGetCudaComputeCapability, gpu.handle, &major, &minor);
  error == NVML_SUCCESS ? out.set("%d.%d", major, minor) : out.set("%s", kNotAvailable);
}

void driver_version(const Gpu& gpu, const Arg&, Text& out) {
  out.set("%s", gpu.session->driver_version.c_str());
}

void gpu_index(const Gpu& gpu, const Arg&, Text& out) {
  out.set("%u", gpu.index);
}
void gpu_count(const Gpu& gpu, const Arg&, Text& out) {
  out.set("%u", gpu.session->attached);
}

void timestamp(const Gpu&, const Arg&, Text& out) {
  timeval now = {};
  gettimeofday(&now, nullptr);
  tm local = {};
  localtime_r(&now.tv_sec, &local);
  out.set("%04d/%02d/%02d %02d:%02d:%02d.%03d", local.tm_year + 1900, local.tm_mon + 1,
          local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec,
          static_cast<int>(now.tv_usec / 1000));
}

void fabric(const Gpu& gpu, const Arg& arg, Text& out) {
  nvmlGpuFabricInfoV_t info = {};
  info.version = nvmlGpuFabricInfo_v3;
  out.set("%s", kNotAvailable);
  if (call(nvml_of(gpu).nvmlDeviceGetGpuFabricInfoV, gpu.handle, &info) != NVML_SUCCESS ||
      info.state == NVML_GPU_FABRIC_STATE_NOT_SUPPORTED) {
    return;
  }
  static constexpr const char* kStates[] = {"N/A", "Not Started", "In Progress", "Completed"};
  static constexpr const char* kHealth[] = {"N/A", "Healthy", "Unhealthy", "Limited Capacity"};
  const bool completed = info.state == NVML_GPU_FABRIC_STATE_COMPLETED;
  if (arg.which == 0) out.set("%s", kStates[info.state & 3]);
  if (!completed) return;
  switch (arg.which) {
    case 1: out.set("%s", words(*gpu.session, info.status)); break;
    case 2: out.set("%u", info.cliqueId); break;
    case 3: {
      const unsigned char* id = info.clusterUuid;
      out.set("%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", id[0], id[1],
              id[2], id[3], id[4], id[5], id[6], id[7], id[8], id[9], id[10], id[11], id[12],
              id[13], id[14], id[15]);
      break;
    }
    case 4: out.set("%s", kHealth[info.healthSummary & 3]); break;
    default: break;
  }
}

}  // namespace smi
