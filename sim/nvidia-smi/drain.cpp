// SPDX-License-Identifier: Apache-2.0
//
// nvidia-smi drain: a GPU that refuses new clients; and nvidia-smi vgpu, which these machines do
// not host.
#include "sim/nvidia-smi/commands.hpp"
#include "sim/nvidia-smi/modify.hpp"

namespace smi {
namespace {

struct DrainOptions {
  const char* address = nullptr;
  const char* state = nullptr;  // -m
  bool query = false, help = false;
};

bool parse_drain(int argc, char** argv, DrainOptions& out) {
  for (int i = 0; i < argc; ++i) {
    const auto is = [&](const char* brief, const char* full) {
      return strcmp(argv[i], brief) == 0 || strcmp(argv[i], full) == 0;
    };
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (is("-h", "--help")) {
      out.help = true;
    } else if (is("-q", "--query")) {
      out.query = true;
    } else if (is("-p", "--pciid") && value != nullptr) {
      out.address = argv[++i];
    } else if (is("-m", "--modify") && value != nullptr) {
      out.state = argv[++i];
    } else {
      return false;
    }
  }
  return out.help || (out.address != nullptr && out.query != (out.state != nullptr));
}

bool parse_address(const char* text, nvmlPciInfo_t& out) {
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;
  unsigned function = 0;
  int end = 0;
  if (sscanf(text, "%x:%x:%x.%x%n", &domain, &bus, &device, &function, &end) != 4 ||
      text[end] != '\0') {
    return false;
  }
  out.domain = domain;
  out.bus = bus;
  out.device = device;
  snprintf(out.busId, sizeof out.busId, "%08X:%02X:%02X.0", domain, bus, device);
  return true;
}

const char* describe_drain(nvmlEnableState_t state) {
  return state == NVML_FEATURE_ENABLED ? "draining" : "not draining";
}

int query_drain(Session& session, nvmlPciInfo_t& pci) {
  nvmlEnableState_t state = NVML_FEATURE_DISABLED;
  const nvmlReturn_t error = call(session.nvml.nvmlDeviceQueryDrainState, &pci, &state);
  if (error != NVML_SUCCESS) {
    printf("Failed to query the drain state of GPU %s: %s\n", pci.busId, words(session, error));
    return error;
  }
  printf("The current drain state of GPU %s is: %s.\n", pci.busId, describe_drain(state));
  return kDone;
}

int modify_drain(Session& session, nvmlPciInfo_t& pci, const char* value) {
  unsigned wanted = 0;
  if (!parse_number(value, &wanted) || wanted > 1) return refuse_value("drain state", value);
  const auto state = wanted == 1 ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
  const nvmlReturn_t error = call(session.nvml.nvmlDeviceModifyDrainState, &pci, state);
  if (error != NVML_SUCCESS) {
    printf("Failed to set the drain state of GPU %s: %s\n", pci.busId, words(session, error));
    return error;
  }
  printf("Successfully set GPU %s drain state to: %s.\n", pci.busId, describe_drain(state));
  return kDone;
}

}  // namespace

int drain(Session& session, int argc, char** argv) {
  DrainOptions options;
  if (!parse_drain(argc, argv, options)) {
    puts("Invalid combination of input arguments. Please run 'nvidia-smi drain -h' for help.\n");
    return kUsage;
  }
  if (options.help) {
    fputs(
        "    drain -- A GPU that drains takes no new clients. Root only, and not in persistence "
        "mode.\n\n"
        "    Usage: nvidia-smi drain -p ADDRESS (-m 0|1 | -q)\n\n"
        "    -p   --pciid      PCI address of the GPU: 0000:18:00.0\n"
        "    -m   --modify     1: drain, 0: take clients again.\n"
        "    -q   --query      Show the state.\n",
        stdout);
    return kDone;
  }
  nvmlPciInfo_t pci = {};
  if (!parse_address(options.address, pci)) return refuse_value("PCI address", options.address);
  return options.query ? query_drain(session, pci) : modify_drain(session, pci, options.state);
}

int vgpu(Session& /*session*/, int argc, char** argv) {
  if (argc > 0 && (strcmp(argv[0], "-h") == 0 || strcmp(argv[0], "--help") == 0)) {
    fputs(
        "    vgpu -- vGPUs that this machine hosts. Simulated machines host none.\n\n"
        "    Usage: nvidia-smi vgpu [-q] [-s] [-c] [-i IDS]\n",
        stdout);
    return kDone;
  }
  puts("No supported devices in vGPU mode");
  return kDone;
}

}  // namespace smi
