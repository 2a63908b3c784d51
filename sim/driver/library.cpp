// SPDX-License-Identifier: Apache-2.0

#include "sim/driver/library.h"

#include "sim/driver/library_internal.hpp"
#include "sim/driver/running_machine.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace gantry::sim {
namespace {

struct LibraryState {
  Lock lock;
  int32_t tried = 0;
  const struct gantry_sim_image* image = nullptr;
  const struct gantry_sim_image* cards = nullptr;  // of a package: `image` is made from them
  char file[PATH_MAX] = {};
  char root[PATH_MAX] = {};
  uint64_t fault_calls[GANTRY_SIM_MAX_FAULTS] = {};
  bool on_overlay = false;
  struct stat mapped = {};  // of the file when it was mapped; only on an overlay
};
constinit LibraryState library{};

// One line of /proc/self/maps: "start-end perms offset dev inode   path". True when it covers
// `address`.
bool covers(const char* line, uintptr_t address, const char** path) {
  char* end = nullptr;
  const unsigned long start = strtoul(line, &end, 16);
  if (*end != '-') return false;
  const unsigned long stop = strtoul(end + 1, &end, 16);
  if (address < start || address >= stop) return false;
  *path = strchr(end, '/');
  return *path != nullptr;
}

struct Search {
  uintptr_t address;
  char* out;
  size_t capacity;
};

int is_ours(dl_phdr_info* info, size_t, void* argument) {
  const auto& search = *static_cast<Search*>(argument);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    const uintptr_t start = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || search.address < start ||
        search.address - start >= segment.p_memsz) {
      continue;
    }
    char resolved[PATH_MAX];
    const char* name = realpath(info->dlpi_name, resolved) != nullptr ? resolved : info->dlpi_name;
    if (name[0] != '/' || strlen(name) >= search.capacity) return 0;
    snprintf(search.out, search.capacity, "%s", name);
    return 1;
  }
  return 0;
}

// Without /proc, as in a chroot of a simulated machine: the name the loader opened.
bool ask_loader(char* out, size_t capacity) {
  Search search{reinterpret_cast<uintptr_t>(&gantry_sim_image), out, capacity};
  return dl_iterate_phdr(is_ours, &search) != 0;
}

// The kernel knows from which file this code was mapped; dladdr, which also does, moved between
// libraries in glibc 2.34.
bool find_own_file(char* out, size_t capacity) {
  FILE* maps = fopen("/proc/self/maps", "re");
  if (maps == nullptr) return ask_loader(out, capacity);
  const auto self = reinterpret_cast<uintptr_t>(&gantry_sim_image);
  char line[PATH_MAX + 128];
  bool found = false;
  while (!found && fgets(line, sizeof line, maps) != nullptr) {
    const char* path = nullptr;
    if (!covers(line, self, &path)) continue;
    const size_t length = strcspn(path, "\n");
    if (length >= capacity) break;
    memcpy(out, path, length);
    out[length] = '\0';
    found = true;
  }
  fclose(maps);
  return found;
}

// A machine has at most one image per library file, so a wrong size is a damaged one.
const struct gantry_sim_image* map_image(const char* file) {
  const int fd = open(file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  const off_t size = lseek(fd, 0, SEEK_END);
  gantry_sim_footer footer{};
  const auto tail = static_cast<off_t>(sizeof footer);
  const auto length = static_cast<off_t>(sizeof(struct gantry_sim_image));
  void* at = MAP_FAILED;
  if (size > length + tail && pread(fd, &footer, sizeof footer, size - tail) == tail &&
      footer.magic == GANTRY_SIM_FOOTER_MAGIC && footer.image_offset % 4096 == 0 &&
      footer.image_offset <= static_cast<uint64_t>(size - tail - length)) {
    at = mmap(nullptr, sizeof(struct gantry_sim_image), PROT_READ, MAP_SHARED, fd,
              static_cast<off_t>(footer.image_offset));
  }
  close(fd);
  if (at == MAP_FAILED) return nullptr;
  const auto* image = static_cast<const struct gantry_sim_image*>(at);
  if (memcmp(image->magic, GANTRY_SIM_MAGIC, sizeof image->magic) == 0 &&
      image->abi == GANTRY_SIM_ABI && image->size == sizeof(struct gantry_sim_image) &&
      is_machine_valid(image->machine)) {
    return image;
  }
  munmap(at, sizeof(struct gantry_sim_image));
  return nullptr;
}

bool strip(const char* file, size_t length, const char* directory, char* root) {
  size_t suffix = strlen(directory);
  while (suffix > 0 && directory[suffix - 1] == '/') --suffix;
  if (suffix == 0 || suffix > length) return false;
  if (memcmp(file + length - suffix, directory, suffix) != 0) return false;
  memcpy(root, file, length - suffix);
  root[length - suffix] = '\0';
  return true;
}

// ROOT/usr/lib/x/libnvidia-ml.so.1 minus the directory the machine says, "/usr/lib/x", leaves ROOT.
// libcuda may lie elsewhere than the others: old drivers keep it in the distribution's directory.
void find_root(const char* file, const char* directory, char* root) {
  root[0] = '\0';
  const char* slash = strrchr(file, '/');
  const size_t length = slash == nullptr ? 0 : static_cast<size_t>(slash - file);
  if (strip(file, length, directory, root)) return;
  constexpr const char* kUsual[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"};
  for (const char* usual : kUsual) {
    if (strip(file, length, usual, root)) return;
  }
  // Behind the fence the file has another name. If the machine is a tree, it is mounted next to it.
  if (strcmp(file, kFencedCuda) != 0 && strcmp(file, kFencedNvml) != 0) return;
  if (access(kFencedMachine, F_OK) == 0) snprintf(root, PATH_MAX, "%s", kFencedMachine);
}

bool same_time(const timespec& one, const timespec& other) {
  return one.tv_sec == other.tv_sec && one.tv_nsec == other.tv_nsec;
}

bool stat_own_file(struct stat& out) {
  return syscall(SYS_newfstatat, AT_FDCWD, library.file, &out, 0) == 0;
}

// Called with the lock held, before the file is mapped.
void find_overlay() {
  struct statfs system = {};
  library.on_overlay = statfs(library.file, &system) == 0 &&
                       system.f_type == OVERLAYFS_SUPER_MAGIC && stat_own_file(library.mapped);
}

// The first write to a file of a lower layer copies it into the upper layer. The name then means
// the copy, but a mapping stays with the original, so it is replaced in place.
void follow_copy() {
  const int saved = errno;
  const Guard guard(library.lock);
  struct stat now = {};
  if (stat_own_file(now) && (!same_time(now.st_mtim, library.mapped.st_mtim) ||
                             !same_time(now.st_ctim, library.mapped.st_ctim))) {
    constexpr size_t kSize = sizeof(struct gantry_sim_image);
    const auto* copy = map_image(library.file);
    if (copy != nullptr) {
      void* to = const_cast<struct gantry_sim_image*>(library.image);
      void* from = const_cast<struct gantry_sim_image*>(copy);
      mremap(from, kSize, kSize, MREMAP_MAYMOVE | MREMAP_FIXED, to);
      library.mapped = now;
    }
  }
  errno = saved;
}

bool is_of_package(const struct gantry_sim_image& image) {
  for (uint32_t i = 0; i < image.machine.field_count; ++i) {
    const auto& field = image.machine.field[i];
    if (field.gpu == -1 && strcmp(field.name, GANTRY_SIM_PACKAGED) == 0) return true;
  }
  return false;
}

// Called with the lock held. Without memory, the library has no machine.
void make_running_machine() {
  void* at = mmap(nullptr, sizeof(struct gantry_sim_image), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  library.cards = library.image;
  library.image = nullptr;
  library.on_overlay = false;
  if (at == MAP_FAILED) return;
  auto* made = static_cast<struct gantry_sim_image*>(at);
  describe_running_machine(*library.cards, library.root, *made);
  library.image = made;
}

void load_image() {
  if (__atomic_load_n(&library.tried, __ATOMIC_ACQUIRE) != 0) {
    if (library.on_overlay && library.image != nullptr) follow_copy();
    return;
  }
  const int saved = errno;
  const Guard guard(library.lock);
  if (library.tried == 0) {
    if (find_own_file(library.file, sizeof library.file)) {
      find_overlay();
      library.image = map_image(library.file);
    }
    if (library.image != nullptr) {
      find_root(library.file, library.image->machine.library_directory, library.root);
      if (is_of_package(*library.image)) make_running_machine();
    }
    __atomic_store_n(&library.tried, 1, __ATOMIC_RELEASE);
  }
  errno = saved;
}

}  // namespace

void read_state(const gantry_sim_state& state, const void* from, void* to, size_t size) {
  for (int tries = 0;; ++tries) {
    const uint32_t before = __atomic_load_n(&state.sequence, __ATOMIC_ACQUIRE);
    memcpy(to, from, size);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    const uint32_t after = __atomic_load_n(&state.sequence, __ATOMIC_RELAXED);
    if ((before == after && before % 2 == 0) || tries == 100) return;
    sleep_us(100);
  }
}

namespace {

bool read_fault(const gantry_sim_state& state, uint32_t index, struct gantry_sim_fault& out) {
  if (index >= __atomic_load_n(&state.fault_count, __ATOMIC_RELAXED)) return false;
  read_state(state, &state.fault[index], &out, sizeof out);
  out.function[sizeof out.function - 1] = '\0';
  return true;
}

// A call that hangs goes on when its fault is cleared or replaced.
void wait_out(const gantry_sim_state& state, uint32_t index, const struct gantry_sim_fault& fault) {
  if (fault.delay_ms != GANTRY_SIM_HANG) return sleep_us(uint64_t{fault.delay_ms} * 1000);
  struct gantry_sim_fault now = fault;
  while (now.delay_ms == GANTRY_SIM_HANG && strcmp(now.function, fault.function) == 0) {
    sleep_us(5000);
    if (library.on_overlay) follow_copy();
    if (!read_fault(state, index, now)) return;
  }
}

// Which call of the function this is for the fault; 0: the fault is about another function.
uint64_t call_number(const struct gantry_sim_fault& fault, uint32_t index, const FaultCall& call) {
  const bool named = strcmp(fault.function, call.function) == 0;
  if (call.all_mig_calls != nullptr && strcmp(fault.function, kAllMigFunctions) == 0)
    return *call.all_mig_calls;
  if (named && call.calls != nullptr) return *call.calls;
  if (!named && strcmp(fault.function, "*") != 0) return 0;
  return __atomic_add_fetch(&library.fault_calls[index], 1, __ATOMIC_RELAXED);
}

}  // namespace

int run_faults(const FaultCall& call, uint32_t* action) {
  const auto* image = gantry_sim_image();
  if (image == nullptr) return 0;
  struct gantry_sim_fault fault = {};
  for (uint32_t i = 0; i < GANTRY_SIM_MAX_FAULTS && read_fault(image->state, i, fault); ++i) {
    const uint64_t number = call_number(fault, i, call);
    if (number == 0 || (fault.call != 0 && number != fault.call)) continue;
    if (fault.every > 1 && number % fault.every != 0) continue;
    if (fault.delay_ms > 0) wait_out(image->state, i, fault);
    if (action != nullptr && fault.action != GANTRY_SIM_FAULT_ONLY) *action = fault.action;
    if (fault.result != 0) return fault.result;
  }
  return 0;
}

}  // namespace gantry::sim

using gantry::sim::library;

const struct gantry_sim_image* gantry_sim_image(void) {
  gantry::sim::load_image();
  return library.image;
}

int gantry_sim_is_packaged(void) {
  gantry::sim::load_image();
  return library.cards != nullptr ? 1 : 0;
}

void gantry_sim_look_again(void) {
  gantry::sim::load_image();
  if (library.cards == nullptr || library.image == nullptr) return;
  const int saved = errno;
  auto* image = const_cast<struct gantry_sim_image*>(library.image);
  gantry::sim::describe_running_machine(*library.cards, library.root, *image);
  errno = saved;
}

const char* gantry_sim_own_file(void) {
  gantry::sim::load_image();
  return library.file;
}

const char* gantry_sim_root(void) {
  gantry::sim::load_image();
  return library.root;
}

void gantry_sim_read_gpu_state(uint32_t gpu, struct gantry_sim_gpu_state* out) {
  const auto* image = gantry_sim_image();
  if (image == nullptr || gpu >= GANTRY_SIM_MAX_GPUS) {
    memset(out, 0, sizeof *out);
    return;
  }
  gantry::sim::read_state(image->state, &image->state.gpu[gpu], out, sizeof *out);
  gantry::sim::clamp_gpu_state(*out);  // the writer is trusted no more than the file
}

int gantry_sim_fault(const char* function) {
  return gantry::sim::run_faults({function, nullptr, nullptr}, nullptr);
}

const char* gantry_sim_field(int32_t gpu, const char* name) {
  const auto* image = gantry_sim_image();
  if (image == nullptr) return "";
  const auto& machine = image->machine;
  for (uint32_t i = 0; i < machine.field_count; ++i) {
    if (machine.field[i].gpu == gpu && strcmp(machine.field[i].name, name) == 0) {
      return machine.field[i].value;
    }
  }
  return "";
}
