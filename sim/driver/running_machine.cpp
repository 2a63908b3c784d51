// SPDX-License-Identifier: Apache-2.0

#include "sim/driver/running_machine.h"

#include "sim/driver/library_internal.hpp"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace gantry::sim {
namespace {

constexpr size_t kFileBytes = 4096;
constexpr uint32_t kUsualMajor = 195;

struct Address {
  unsigned domain, bus, device, function;
};

// What nvidia.ko says of one GPU.
struct Information {
  char model[96], uuid[96], vbios[32], minor[16], excluded[16];
};

int by_address(const void* one, const void* other) {
  const auto& a = *static_cast<const Address*>(one);
  const auto& b = *static_cast<const Address*>(other);
  const unsigned left[] = {a.domain, a.bus, a.device, a.function};
  const unsigned right[] = {b.domain, b.bus, b.device, b.function};
  for (int i = 0; i < 4; ++i) {
    if (left[i] != right[i]) return left[i] < right[i] ? -1 : 1;
  }
  return 0;
}

// The text after "NAME:" and blanks in one line of a file; "" if there is no such line.
void copy_value(const char* text, const char* name, char* out, size_t size) {
  const size_t length = strlen(name);
  out[0] = '\0';
  for (const char* line = text; line != nullptr && *line != '\0';) {
    const char* end = strchr(line, '\n');
    if (strncmp(line, name, length) == 0 && line[length] == ':') {
      const char* value = line + length + 1;
      value += strspn(value, " \t");
      const size_t count = strcspn(value, "\n");
      if (count < size) snprintf(out, size, "%.*s", static_cast<int>(count), value);
      return;
    }
    line = end == nullptr ? nullptr : end + 1;
  }
}

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  460.56  ...": the first word that begins with a
// digit.
void copy_version(const char* text, char* out, size_t size) {
  out[0] = '\0';
  for (const char* at = text; *at != '\0' && *at != '\n';) {
    at += strspn(at, " \t");
    const size_t length = strcspn(at, " \t\n");
    if (*at >= '0' && *at <= '9') {
      if (length < size) snprintf(out, size, "%.*s", static_cast<int>(length), at);
      return;
    }
    at += length;
  }
}

// Of a character device in /proc/devices; 0: the kernel has no such device.
uint32_t major_of(const char* devices, const char* name) {
  for (const char* line = strstr(devices, "Character devices:"); line != nullptr;) {
    if (strncmp(line, "Block devices:", 14) == 0) return 0;
    char* end = nullptr;
    const unsigned long number = strtoul(line, &end, 10);
    const size_t length = strlen(name);
    if (end != line && *end == ' ' && strncmp(end + 1, name, length) == 0 &&
        (end[1 + length] == '\n' || end[1 + length] == '\0')) {
      return static_cast<uint32_t>(number);
    }
    line = strchr(line, '\n');
    if (line != nullptr) ++line;
  }
  return 0;
}

void read_driver(const char* root, gantry_sim_machine& machine) {
  char path[PATH_MAX];
  char text[kFileBytes];
  machine.kernel_version[0] = '\0';
  snprintf(path, sizeof path, "%s/proc/driver/nvidia/version", root);
  if (read_small_file(path, text, sizeof text) > 0)
    copy_version(text, machine.kernel_version, sizeof machine.kernel_version);
  snprintf(path, sizeof path, "%s/proc/devices", root);
  if (read_small_file(path, text, sizeof text) <= 0) text[0] = '\0';
  const uint32_t frontend = major_of(text, "nvidia-frontend");  // its name before 550
  const uint32_t found = frontend != 0 ? frontend : major_of(text, "nvidia");
  machine.nvidia_major = found != 0 ? found : kUsualMajor;
  machine.uvm_major = major_of(text, "nvidia-uvm");
  machine.caps_major = major_of(text, "nvidia-caps");
}

uint32_t list_gpus(const char* root, Address* out) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/proc/driver/nvidia/gpus", root);
  DIR* directory = opendir(path);
  if (directory == nullptr) return 0;
  uint32_t count = 0;
  while (const dirent* entry = readdir(directory)) {
    Address& at = out[count];
    if (count == GANTRY_SIM_MAX_GPUS ||
        sscanf(entry->d_name, "%x:%x:%x.%x", &at.domain, &at.bus, &at.device, &at.function) != 4) {
      continue;
    }
    ++count;
  }
  closedir(directory);
  qsort(out, count, sizeof *out, by_address);
  return count;
}

bool read_information(const char* root, const Address& at, Information& out) {
  char path[PATH_MAX];
  char text[kFileBytes];
  snprintf(path, sizeof path, "%s/proc/driver/nvidia/gpus/%04x:%02x:%02x.%x/information", root,
           at.domain, at.bus, at.device, at.function);
  if (read_small_file(path, text, sizeof text) <= 0) return false;
  copy_value(text, "Model", out.model, sizeof out.model);
  copy_value(text, "GPU UUID", out.uuid, sizeof out.uuid);
  copy_value(text, "Video BIOS", out.vbios, sizeof out.vbios);
  copy_value(text, "Device Minor", out.minor, sizeof out.minor);
  copy_value(text, "GPU Excluded", out.excluded, sizeof out.excluded);
  return out.minor[0] != '\0';
}

void sysfs_path(const char* root, const Address& at, const char* file, char* out, size_t size) {
  snprintf(out, size, "%s/sys/bus/pci/devices/%04x:%02x:%02x.%x%s", root, at.domain, at.bus,
           at.device, at.function, file);
}

long sysfs_number(const char* root, const Address& at, const char* file, long otherwise) {
  char path[PATH_MAX];
  char text[64];
  sysfs_path(root, at, file, path, sizeof path);
  return read_small_file(path, text, sizeof text) > 0 ? strtol(text, nullptr, 0) : otherwise;
}

// By ids and name: two cards can have one id. -1: there is no such card.
int find_card(const gantry_sim_machine& cards, long device_id, const char* model) {
  int by_id = -1;
  int by_name = -1;
  for (uint32_t i = 0; i < cards.gpu_count; ++i) {
    const bool same_id = cards.gpu[i].pci_id >> 16 == static_cast<unsigned long>(device_id);
    const bool same_name = strcmp(cards.gpu[i].name, model) == 0;
    if (same_id && same_name) return static_cast<int>(i);
    if (same_id && by_id < 0) by_id = static_cast<int>(i);
    if (same_name && by_name < 0) by_name = static_cast<int>(i);
  }
  return by_name >= 0 ? by_name : by_id;
}

void copy_fields(const gantry_sim_machine& cards, int card, int32_t gpu, gantry_sim_machine& out) {
  for (uint32_t i = 0; i < cards.field_count && out.field_count < GANTRY_SIM_MAX_FIELDS; ++i) {
    if (cards.field[i].gpu != card) continue;
    out.field[out.field_count] = cards.field[i];
    out.field[out.field_count++].gpu = gpu;
  }
}

void add_gpu(const struct gantry_sim_image& cards, const char* root, const Address& at,
             struct gantry_sim_image& out) {
  Information said{};
  if (!read_information(root, at, said)) return;
  const int card = find_card(cards.machine, sysfs_number(root, at, "/device", 0), said.model);
  if (card < 0) return;
  const uint32_t index = out.machine.gpu_count++;
  gantry_sim_gpu& gpu = out.machine.gpu[index];
  gpu = cards.machine.gpu[card];
  out.state.gpu[index] = cards.state.gpu[card];
  out.state.gpu[index].persistence = 0;
  copy_fields(cards.machine, card, static_cast<int32_t>(index), out.machine);
  gpu.domain = at.domain;
  gpu.bus = at.bus;
  gpu.device = at.device;
  gpu.function = at.function;
  gpu.minor = static_cast<uint32_t>(strtoul(said.minor, nullptr, 10));
  gpu.numa_node = static_cast<int32_t>(sysfs_number(root, at, "/numa_node", -1));
  gpu.excluded = strcmp(said.excluded, "Yes") == 0 ? 1 : 0;
  gpu.board_id = at.bus << 8 | at.device;
  if (said.uuid[0] != '\0') snprintf(gpu.uuid, sizeof gpu.uuid, "%s", said.uuid);
  if (said.vbios[0] == '\0') return;
  snprintf(gpu.vbios, sizeof gpu.vbios, "%s", said.vbios);
  for (char& c : gpu.vbios) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
}

// The directories of two functions: "/sys/devices/pci0000:10/0000:10:00.0/0000:11:00.0". The names
// between the root bus and the function are its bridges.
uint8_t path_level(const char* one, const char* other, bool same_node) {
  const char* a = strstr(one, "/pci");
  const char* b = strstr(other, "/pci");
  if (a == nullptr || b == nullptr) return 50;
  size_t shared = 0;  // names that both have in front
  size_t left = 0;    // bridges of each, and the root bus
  size_t right = 0;
  bool equal = true;
  for (const char* p = strchr(a + 1, '/'); p != nullptr; p = strchr(p + 1, '/')) ++left;
  for (const char* p = strchr(b + 1, '/'); p != nullptr; p = strchr(p + 1, '/')) ++right;
  while (equal && shared < left && shared < right) {
    const size_t length = strcspn(a + 1, "/");
    equal = length == strcspn(b + 1, "/") && strncmp(a + 1, b + 1, length) == 0;
    if (!equal) break;
    ++shared;
    a += length + 1;
    b += length + 1;
  }
  if (shared > 1) return (left > right ? left : right) - shared <= 1 ? 10 : 20;
  if (shared == 1) return 30;
  return same_node ? 40 : 50;
}

void find_distances(const char* root, gantry_sim_machine& machine) {
  char(*places)[PATH_MAX] = static_cast<char(*)[PATH_MAX]>(calloc(machine.gpu_count, PATH_MAX));
  if (places == nullptr) return;
  for (uint32_t i = 0; i < machine.gpu_count; ++i) {
    const auto& gpu = machine.gpu[i];
    char path[PATH_MAX];
    sysfs_path(root, {gpu.domain, gpu.bus, gpu.device, gpu.function}, "", path, sizeof path);
    if (realpath(path, places[i]) == nullptr) places[i][0] = '\0';
  }
  for (uint32_t i = 0; i < machine.gpu_count; ++i) {
    for (uint32_t j = 0; j < machine.gpu_count; ++j) {
      const bool same_node = machine.gpu[i].numa_node == machine.gpu[j].numa_node;
      machine.topology[i][j] = i == j ? 0 : path_level(places[i], places[j], same_node);
    }
  }
  free(places);
}

}  // namespace

void describe_running_machine(const struct gantry_sim_image& cards, const char* root,
                              struct gantry_sim_image& out) {
  memcpy(out.magic, cards.magic, sizeof out.magic);
  out.abi = cards.abi;
  out.size = cards.size;
  memset(&out.state, 0, sizeof out.state);
  out.machine = cards.machine;
  out.machine.gpu_count = 0;
  out.machine.field_count = 0;
  copy_fields(cards.machine, -1, -1, out.machine);
  read_driver(root, out.machine);
  Address gpus[GANTRY_SIM_MAX_GPUS + 1];
  const uint32_t count = list_gpus(root, gpus);
  for (uint32_t i = 0; i < count; ++i) add_gpu(cards, root, gpus[i], out);
  if (out.machine.gpu_count > 0) find_distances(root, out.machine);
}

}  // namespace gantry::sim
