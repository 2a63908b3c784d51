// SPDX-License-Identifier: Apache-2.0
#include "sim/state_file.hpp"

#include <linux/futex.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>

namespace gantry::sim {
namespace {

constexpr std::size_t kPage = 4096;

std::uint32_t sequence_of(const gantry_sim_state& state) {
  return __atomic_load_n(&state.sequence, __ATOMIC_ACQUIRE);
}

Error damaged(const std::string& path) {
  return Error(
      Errc::Corrupt,
      fmt::format(
          "{} carries no simulated machine; make the tree again with `gantry sim create --force`",
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
  if (footer.magic != GANTRY_SIM_FOOTER_MAGIC || footer.image_offset % kPage != 0 ||
      footer.image_offset > size ||
      size - footer.image_offset != sizeof(gantry_sim_image) + sizeof footer) {
    return damaged(path);
  }
  return footer.image_offset;
}

}  // namespace

Result<StateFile> StateFile::open(const std::string& root) {
  GANTRY_TRY(const Marker marker, read_marker(root));
  if (marker.nvml_library.empty()) {
    return Error(Errc::Unsupported,
                 fmt::format("{} has no NVIDIA driver installed: there is nothing to inject into",
                             marker.machine));
  }
  GANTRY_TRY(sys::Host host, sys::Host::at(root));
  // The lock that NVML takes, too, when a program changes the machine through it.
  GANTRY_TRY(sys::UniqueFd lock, host.open(marker.nvml_library, O_RDONLY));
  while (::flock(lock.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return Error::sys(errno, fmt::format("lock {}", root));
  }
  StateFile file(std::move(host), std::move(lock));
  GANTRY_CHECK(file.map(marker.nvml_library));
  GANTRY_CHECK(file.map(marker.cuda_library));
  // An odd sequence is what a killed injector left. The other file is whole then: they are written
  // one after the other.
  const auto* whole = file.files_[0].image;
  if (sequence_of(whole->state) % 2 != 0) whole = file.files_[1].image;
  file.working_ = std::make_unique<gantry_sim_image>(*whole);
  if (file.working_->machine.gpu_count > GANTRY_SIM_MAX_GPUS) return damaged(root);
  GANTRY_CHECK(file.read_baseline());
  return file;
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

Status StateFile::map(const std::string& path) {
  GANTRY_TRY(const sys::UniqueFd fd, host_.open(path, O_RDWR));
  GANTRY_TRY(const sys::FileInfo info, host_.info(path));
  GANTRY_TRY(const std::uint64_t offset, image_offset(fd.get(), info.size, path));
  Mapping mapping;
  mapping.size = sizeof(gantry_sim_image);
  mapping.address = ::mmap(nullptr, mapping.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(),
                           static_cast<off_t>(offset));
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
             host_.read(fmt::format("{}/state", kKeepPath), sizeof(gantry_sim_state)));
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
