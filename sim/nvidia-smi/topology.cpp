// SPDX-License-Identifier: Apache-2.0
//
// nvidia-smi topo -m and nvidia-smi nvlink -s.
#include "sim/nvidia-smi/commands.hpp"
#include "sim/nvidia-smi/readings.hpp"

namespace smi {
namespace {

constexpr unsigned kWords = 64;  // of the bit sets NVML fills: 4096 CPUs
constexpr const char* kUnderline = "\033[4m";
constexpr const char* kPlain = "\033[0m";

// "0-15,32-47"; "N/A" for an empty set
Text ranges(const unsigned long* bits, unsigned words) {
  Text out;
  const unsigned width = sizeof(unsigned long) * 8;
  const unsigned end = words * width;
  const auto has = [bits](unsigned i) { return (bits[i / width] >> (i % width) & 1UL) != 0; };
  for (unsigned i = 0; i < end; ++i) {
    if (!has(i)) continue;
    unsigned last = i;
    while (last + 1 < end && has(last + 1)) ++last;
    out.add("%s%u", out.empty() ? "" : ",", i);
    if (last > i) out.add("-%u", last);
    i = last;
  }
  if (out.empty()) out.set("%s", kNotAvailable);
  return out;
}

Text cpu_affinity(const Gpu& gpu) {
  unsigned long bits[kWords] = {};
  call(gpu.session->nvml.nvmlDeviceGetCpuAffinity, gpu.handle, kWords, bits);
  return ranges(bits, kWords);
}

Text memory_affinity(const Gpu& gpu) {
  unsigned long bits[kWords] = {};
  call(gpu.session->nvml.nvmlDeviceGetMemoryAffinity, gpu.handle, kWords, bits,
       static_cast<nvmlAffinityScope_t>(NVML_AFFINITY_SCOPE_NODE));
  return ranges(bits, kWords);
}

bool is_active(const Gpu& gpu, unsigned number) {
  nvmlEnableState_t state = NVML_FEATURE_DISABLED;
  return call(gpu.session->nvml.nvmlDeviceGetNvLinkState, gpu.handle, number, &state) ==
             NVML_SUCCESS &&
         state == NVML_FEATURE_ENABLED;
}

bool leads_to_switch(const Gpu& gpu, unsigned number) {
  nvmlIntNvLinkDeviceType_t type = NVML_NVLINK_DEVICE_TYPE_UNKNOWN;
  return call(gpu.session->nvml.nvmlDeviceGetNvLinkRemoteDeviceType, gpu.handle, number, &type) ==
             NVML_SUCCESS &&
         type == NVML_NVLINK_DEVICE_TYPE_SWITCH;
}

// Links from one GPU to another, or through a switch that joins all of them.
unsigned links_between(const Gpu& from, const Gpu& to) {
  unsigned direct = 0;
  unsigned switched = 0;
  for (unsigned number = 0; number < NVML_NVLINK_MAX_LINKS; ++number) {
    if (!is_active(from, number)) continue;
    nvmlPciInfo_t remote = {};
    if (leads_to_switch(from, number)) {
      ++switched;
    } else if (call(from.session->nvml.nvmlDeviceGetNvLinkRemotePciInfo_v2, from.handle, number,
                    &remote) == NVML_SUCCESS &&
               strcmp(remote.busId, to.bus_id) == 0) {
      ++direct;
    }
  }
  return direct != 0 ? direct : switched;
}

Text connection(const Gpu& from, const Gpu& to) {
  Text out;
  const unsigned links = links_between(from, to) < links_between(to, from)
                             ? links_between(from, to)
                             : links_between(to, from);
  if (links != 0) {
    out.set("NV%u", links);
    return out;
  }
  nvmlGpuTopologyLevel_t level = NVML_TOPOLOGY_SYSTEM;
  call(from.session->nvml.nvmlDeviceGetTopologyCommonAncestor, from.handle, to.handle, &level);
  switch (level) {
    case NVML_TOPOLOGY_INTERNAL:
    case NVML_TOPOLOGY_SINGLE: out.set("PIX"); break;
    case NVML_TOPOLOGY_MULTIPLE: out.set("PXB"); break;
    case NVML_TOPOLOGY_HOSTBRIDGE: out.set("PHB"); break;
    case NVML_TOPOLOGY_NODE: out.set("NODE"); break;
    default: out.set("SYS"); break;
  }
  return out;
}

void show_matrix(const Session& session) {
  const bool shows_numa = session.at_least(450);
  const bool shows_gpu_numa = session.at_least(530);
  printf("\t%s", kUnderline);
  for (unsigned i = 0; i < session.count; ++i) printf("GPU%u\t", session.gpus[i].index);
  printf("CPU Affinity%s%s%s\n", shows_numa ? "\tNUMA Affinity" : "",
         shows_gpu_numa ? "\tGPU NUMA ID" : "", kPlain);
  for (unsigned i = 0; i < session.count; ++i) {
    const Gpu& gpu = session.gpus[i];
    printf("GPU%u\t", gpu.index);
    for (unsigned j = 0; j < session.count; ++j) {
      printf("%s\t", i == j ? " X " : connection(gpu, session.gpus[j]).c_str());
    }
    printf("%s", cpu_affinity(gpu).c_str());
    if (shows_numa) printf("\t%s", memory_affinity(gpu).c_str());
    if (shows_gpu_numa) printf("\t\t%s", field_or(gpu, "gpu_numa_id", kNotAvailable));
    putchar('\n');
  }
  fputs(
      "\nLegend:\n\n"
      "  X    = Self\n"
      "  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes "
      "(e.g., QPI/UPI)\n"
      "  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges "
      "within a NUMA "
      "node\n"
      "  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)\n"
      "  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host "
      "Bridge)\n"
      "  PIX  = Connection traversing at most a single PCIe bridge\n"
      "  NV#  = Connection traversing a bonded set of # NVLinks\n",
      stdout);
}

// Of one link, by what NVML calls its version (1.0, 2.0, 2.2, 3.0, 3.1, 4.0, 5.0).
const char* link_speed(const Gpu& gpu, unsigned number) {
  static constexpr const char* kSpeeds[] = {"26.562 GB/s", "20 GB/s", "25.781 GB/s", "25.781 GB/s",
                                            "25 GB/s",     "25 GB/s", "26.562 GB/s", "53.125 GB/s"};
  unsigned version = 0;
  call(gpu.session->nvml.nvmlDeviceGetNvLinkVersion, gpu.handle, number, &version);
  return kSpeeds[version < 8 ? version : 0];
}

void show_links(const Gpu& gpu) {
  bool headed = false;
  for (unsigned number = 0; number < NVML_NVLINK_MAX_LINKS; ++number) {
    nvmlEnableState_t state = NVML_FEATURE_DISABLED;
    if (call(gpu.session->nvml.nvmlDeviceGetNvLinkState, gpu.handle, number, &state) !=
        NVML_SUCCESS)
      continue;
    if (!headed) {
      Text name;
      Text id;
      product_name(gpu, {}, name);
      uuid(gpu, {}, id);
      printf("GPU %u: %s (UUID: %s)\n", gpu.index, name.c_str(), id.c_str());
      headed = true;
    }
    printf("\t Link %u: %s\n", number,
           state == NVML_FEATURE_ENABLED ? link_speed(gpu, number) : "<inactive>");
  }
}

const char* value_of(int argc, char** argv, const char* brief, const char* full) {
  for (int i = 0; i + 1 < argc; ++i) {
    if (strcmp(argv[i], brief) == 0 || strcmp(argv[i], full) == 0) return argv[i + 1];
  }
  return nullptr;
}

bool has(int argc, char** argv, const char* brief, const char* full) {
  for (int i = 0; i < argc; ++i) {
    if (strcmp(argv[i], brief) == 0 || strcmp(argv[i], full) == 0) return true;
  }
  return false;
}

}  // namespace

int topology(Session& session, int argc, char** argv) {
  const bool matrix = has(argc, argv, "-m", "--matrix") || has(argc, argv, "-mp", "--matrix_pci");
  if (!matrix) {
    puts(
        "\n    topo -- Display topological information about the system.\n\n"
        "    Usage: nvidia-smi topo [options]\n\n"
        "    [-m | --matrix]: How the GPUs of this system reach each other.\n");
    return argc == 0 || has(argc, argv, "-h", "--help") ? kDone : kUsage;
  }
  const int status = select(session, nullptr);
  if (status != kDone) return status;
  show_matrix(session);
  return kDone;
}

int nvlink(Session& session, int argc, char** argv) {
  if (!has(argc, argv, "-s", "--status")) {
    puts(
        "\n    nvlink -- Display NvLink information.\n\n"
        "    Usage: nvidia-smi nvlink [options]\n\n"
        "    [-s | --status]: State and speed of each link.\n"
        "    [-i | --id]: Index, UUID or PCI address of a GPU.\n");
    return argc == 0 || has(argc, argv, "-h", "--help") ? kDone : kUsage;
  }
  const int status = select(session, value_of(argc, argv, "-i", "--id"));
  if (status != kDone) return status;
  for (unsigned i = 0; i < session.count; ++i) show_links(session.gpus[i]);
  return kDone;
}

}  // namespace smi
