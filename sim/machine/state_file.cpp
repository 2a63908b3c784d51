// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/state_file.hpp"

#include "sim/driver/library_internal.hpp"
#include "sim/machine/image.hpp"

#include <linux/futex.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>
#include <thread>

namespace gantry::sim {
namespace {

std::uint32_t sequence_of(const gantry_sim_state& state) {
  return __atomic_load_n(&state.sequence, __ATOMIC_ACQUIRE);
}

Error damaged(const std::string& path) {
  return Error(Errc::Corrupt, fmt::format("{} contains no simulated machine; create the tree again "
                                          "with `gantry sim create --force`",
                                          path));
}

// Offset of the image in a library file, from the footer.
Result<std::uint64_t> image_offset(int fd, std::uint64_t size, const std::string& path) {
  gantry_sim_footer footer{};
  if (size < sizeof footer + sizeof(gantry_sim_image) ||
      ::pread(fd, &footer, sizeof footer, static_cast<off_t>(size - sizeof footer)) !=
          static_cast<ssize_t>(sizeof footer)) {
    return damaged(path);
  }
  if (footer.magic != GANTRY_SIM_FOOTER_MAGIC || footer.image_offset % kImageAlignment != 0 ||
      footer.image_offset > size ||
      size - footer.image_offset != sizeof(gantry_sim_image) + sizeof footer) {
    return damaged(path);
  }
  return footer.image_offset;
}

Result<TreeMarker> marker_with_driver(const std::string& root) {
  GANTRY_TRY(TreeMarker marker, read_marker(root));
  if (!marker.nvml_library.empty()) return marker;
  return Error(Errc::Unsupported,
               fmt::format("{} has no NVIDIA driver, so nothing can be injected", marker.machine));
}

}  // namespace

Result<StateFile> StateFile::open(const std::string& root, std::chrono::milliseconds patience) {
  GANTRY_TRY(const TreeMarker marker, marker_with_driver(root));
  GANTRY_TRY(sys::Host host, sys::Host::at(root));
  StateFile file(std::move(host));
  GANTRY_CHECK(file.lock(marker.nvml_library, patience));
  if (const auto loaded = file.load(marker, O_RDWR); !loaded.ok()) {
    if (loaded.error().code() != Errc::Denied) return loaded.error();
    return Error(Errc::Denied,
                 fmt::format("{} belongs to another user, and only that user may change it; run "
                             "this as that user (`stat -c %U {}` shows the name), or create your "
                             "own machine with `gantry sim create {} --root DIR`",
                             root, root, marker.machine));
  }
  return file;
}

Result<StateFile> StateFile::look(const std::string& root) {
  GANTRY_TRY(const TreeMarker marker, marker_with_driver(root));
  GANTRY_TRY(sys::Host host, sys::Host::at(root));
  StateFile file(std::move(host));
  GANTRY_CHECK(file.load(marker, O_RDONLY));
  return file;
}

// NVML takes the same lock when a program changes the machine through it. Every process that can
// read the library can hold it, so the wait is limited.
Status StateFile::lock(const std::string& path, std::chrono::milliseconds patience) {
  GANTRY_TRY(lock_, host_.open(path, O_RDONLY | O_NONBLOCK));
  const auto until = std::chrono::steady_clock::now() + patience;
  while (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EINTR && errno != EWOULDBLOCK)
      return Error::sys(errno, fmt::format("lock {}", host_.outside(path)));
    if (std::chrono::steady_clock::now() >= until) {
      return Error(Errc::Busy,
                   fmt::format("another process holds the lock of {}; `fuser -v {}` shows it",
                               host_.root(), host_.outside(path)));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return {};
}

Status StateFile::load(const TreeMarker& marker, int flags) {
  GANTRY_CHECK(map(marker.nvml_library, flags));
  GANTRY_CHECK(map(marker.cuda_library, flags));
  GANTRY_CHECK(copy_whole());
  if (!is_machine_valid(working_->machine)) return damaged(host_.root());
  GANTRY_CHECK(read_baseline());
  clamp_state(working_->state);
  clamp_state(*baseline_);
  return {};
}

// An odd sequence means that an injector was killed or, if we hold no lock, is still writing. The
// other file is complete then, because they are written one after the other.
Status StateFile::copy_whole() {
  working_ = std::make_unique<gantry_sim_image>();
  for (int tries = 0; tries < 100; ++tries) {
    for (const auto& file : files_) {
      const auto before = sequence_of(file.image->state);
      std::memcpy(working_.get(), file.image, sizeof *working_);
      std::atomic_thread_fence(std::memory_order_acquire);
      if (before % 2 == 0 && sequence_of(file.image->state) == before) return {};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {};  // killed twice: uses the current content, with bounds
}

StateFile::StateFile(StateFile&& other) noexcept
    : host_(std::move(other.host_)),
      lock_(std::move(other.lock_)),
      files_(std::move(other.files_)),
      working_(std::move(other.working_)),
      baseline_(std::move(other.baseline_)) {
  other.files_.clear();
}

StateFile::~StateFile() {
  for (const auto& file : files_) ::munmap(file.address, file.size);
}

Status StateFile::map(const std::string& path, int flags) {
  GANTRY_TRY(const sys::UniqueFd fd, host_.open(path, flags | O_NONBLOCK));
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return Error::sys(errno, fmt::format("stat {}", path));
  if (!S_ISREG(st.st_mode)) return damaged(path);
  GANTRY_TRY(const std::uint64_t offset,
             image_offset(fd.get(), static_cast<std::uint64_t>(st.st_size), path));
  Mapping mapping;
  mapping.size = sizeof(gantry_sim_image);
  const int access = flags == O_RDWR ? PROT_READ | PROT_WRITE : PROT_READ;
  mapping.address =
      ::mmap(nullptr, mapping.size, access, MAP_SHARED, fd.get(), static_cast<off_t>(offset));
  if (mapping.address == MAP_FAILED) return Error::sys(errno, fmt::format("map {}", path));
  mapping.image = static_cast<gantry_sim_image*>(mapping.address);
  files_.push_back(mapping);
  if (std::memcmp(mapping.image->magic, GANTRY_SIM_MAGIC, sizeof mapping.image->magic) != 0 ||
      mapping.image->abi != GANTRY_SIM_ABI || mapping.image->size != sizeof(gantry_sim_image)) {
    return damaged(path);
  }
  return {};
}

Status StateFile::read_baseline() {
  baseline_ = std::make_unique<gantry_sim_state>();
  GANTRY_TRY(const std::string kept,
             host_.read(fmt::format("{}/state", kBackupPath), sizeof(gantry_sim_state)));
  if (kept.size() != sizeof(gantry_sim_state)) return damaged(host_.root());
  std::memcpy(baseline_.get(), kept.data(), kept.size());
  return {};
}

void StateFile::publish(gantry_sim_state& to, const gantry_sim_state& from) {
  const auto odd = sequence_of(to) | 1U;
  __atomic_store_n(&to.sequence, odd, __ATOMIC_SEQ_CST);
  constexpr auto kBody = offsetof(gantry_sim_state, driver_unloaded);
  std::memcpy(reinterpret_cast<char*>(&to) + kBody, reinterpret_cast<const char*>(&from) + kBody,
              sizeof to - kBody);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  __atomic_store_n(&to.sequence, odd + 1, __ATOMIC_SEQ_CST);
  ::syscall(SYS_futex, &to.sequence, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void StateFile::commit() {
  for (const auto& file : files_) publish(file.image->state, working_->state);
}

}  // namespace gantry::sim
