// SPDX-License-Identifier: Apache-2.0
#include "sim/libcuda/shared_memory.hpp"

#include "sim/libcuda/memory.hpp"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gantry::sim::cuda {
namespace {

constexpr uint64_t kMemoryMagic = 0x6d654d6572616853;

struct SharedBlock {
  SharedBlock* next;
  const char* data;
  SharedHeader header;
  int fd;
};
constinit SharedBlock* all_shared = nullptr;

bool write_all(int fd, const char* from, uint64_t bytes, uint64_t at) {
  while (bytes > 0) {
    const ssize_t done = pwrite(fd, from, bytes, static_cast<off_t>(at));
    if (done <= 0) return false;
    from += done;
    at += static_cast<uint64_t>(done);
    bytes -= static_cast<uint64_t>(done);
  }
  return true;
}

int make_memory_file(const char* data, const SharedHeader& header) {
  const int fd = static_cast<int>(syscall(SYS_memfd_create, "gantry-sim-memory", kCloseOnExec));
  if (fd < 0) return -1;
  if (ftruncate(fd, static_cast<off_t>(header.size + 4096)) == 0 &&
      write_all(fd, data, header.size, 0) &&
      write_all(fd, reinterpret_cast<const char*>(&header), sizeof header, header.size))
    return fd;
  close(fd);
  return -1;
}

}  // namespace

int share_in_place(char* data, uint64_t size, const Device& device, SharedHeader& header) {
  for (const SharedBlock* one = all_shared; one != nullptr; one = one->next) {
    if (one->data != data) continue;
    header = one->header;
    return one->fd;
  }
  auto* made = static_cast<SharedBlock*>(calloc(1, sizeof(SharedBlock)));
  if (made == nullptr) return -1;
  const uint64_t own = static_cast<uint64_t>(getpid()) << 32U;
  header = {kMemoryMagic, size, own + ++driver.next_id, device.gpu, device.gi};
  const int fd = make_memory_file(data, header);
  if (fd < 0 ||
      mmap(data, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
    if (fd >= 0) close(fd);
    free(made);
    return -1;
  }
  *made = {all_shared, data, header, fd};
  all_shared = made;
  return fd;
}

bool read_shared_header(int fd, SharedHeader& header) {
  const off_t end = lseek(fd, 0, SEEK_END);
  if (end < 4096) return false;
  const auto size = static_cast<uint64_t>(end) - 4096;
  return pread(fd, &header, sizeof header, static_cast<off_t>(size)) ==
             static_cast<ssize_t>(sizeof header) &&
         header.magic == kMemoryMagic && header.size == size && size != 0 &&
         size < kMaxAddressSpace;
}

char* map_shared(int fd, SharedHeader& header) {
  if (!read_shared_header(fd, header)) return nullptr;
  void* at = mmap(nullptr, header.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return at == MAP_FAILED ? nullptr : static_cast<char*>(at);
}

void end_sharing(const char* data) {
  for (SharedBlock** at = &all_shared; *at != nullptr; at = &(*at)->next) {
    SharedBlock* found = *at;
    if (found->data != data) continue;
    *at = found->next;
    close(found->fd);
    free(found);
    return;
  }
}

}  // namespace gantry::sim::cuda
