// SPDX-License-Identifier: Apache-2.0
#include "sharing/fence/daemon_link_for_test.hpp"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace gantry::fence::test {
namespace {

int sealed(std::uint64_t size) {
  const int fd = ::memfd_create("fence", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  EXPECT_EQ(::ftruncate(fd, static_cast<off_t>(size)), 0);
  EXPECT_EQ(::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  return fd;
}

void* mapped(int fd, std::uint64_t size) {
  void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  EXPECT_NE(at, MAP_FAILED);
  return at;
}

int listener_at(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  ::unlink(path.c_str());
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  EXPECT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::listen(fd, 64), 0);
  return fd;
}

}  // namespace

Host::Host(std::uint32_t gpu_count) : usage_size_(fence_usage_size(gpu_count)) {
  limits_fd_ = sealed(sizeof(FenceLimits));
  usage_fd_ = sealed(usage_size_);
  limits_ = static_cast<FenceLimits*>(mapped(limits_fd_, sizeof(FenceLimits)));
  usage_ = static_cast<FenceUsage*>(mapped(usage_fd_, usage_size_));
  limits_->magic = FENCE_MAGIC;
  limits_->version = FENCE_VERSION;
  limits_->gpu_count = gpu_count;
  for (std::uint32_t i = 0; i < gpu_count; ++i) limits_->gpu[i].memory_limit = UINT64_MAX;
}

Host::~Host() {
  stop();
  ::munmap(limits_, sizeof(FenceLimits));
  ::munmap(usage_, usage_size_);
  ::close(limits_fd_);
  ::close(usage_fd_);
}

std::string Host::install(const std::string& fence) const {
  return place_.install(fence, std::filesystem::path(fence).filename().string());
}

// Written once and valid for the whole test: on a busy machine a thread might not run in time, and
// the gates would count as open.
void Host::beat() {
  __atomic_store_n(&limits_->heartbeat_ns, UINT64_MAX, __ATOMIC_RELAXED);
}

void Host::start() {
  stop();
  stop_ = ::eventfd(0, EFD_CLOEXEC);
  beat();
  thread_ = std::thread([this, listener = listener_at(path("socket"))] {
    serve(listener);
    ::close(listener);
  });
}

// The socket's file stays, as after kill -9 of the daemon.
void Host::stop() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  EXPECT_EQ(::write(stop_, &one, sizeof one), static_cast<ssize_t>(sizeof one));
  thread_.join();
  ::close(stop_);
  __atomic_store_n(&limits_->heartbeat_ns, 0, __ATOMIC_RELAXED);
}

void Host::serve(int listener) {
  std::vector<pollfd> wait = {{listener, POLLIN, 0}, {stop_, POLLIN, 0}};
  for (;;) {
    ::poll(wait.data(), wait.size(), -1);
    if (wait[1].revents != 0) break;
    for (std::size_t i = wait.size(); i-- > 2;) {
      if (wait[i].revents == 0 || take_report(wait[i].fd)) continue;
      ::close(wait[i].fd);
      wait.erase(wait.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (wait[0].revents == 0) continue;
    const int client = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    if (answer(client))
      wait.push_back({client, POLLIN, 0});
    else
      ::close(client);
  }
  for (std::size_t i = 2; i < wait.size(); ++i) ::close(wait[i].fd);
}

// True if it is a process that reports.
bool Host::answer(int client) {
  FenceHello hello{};
  if (::recv(client, &hello, sizeof hello, 0) != static_cast<ssize_t>(sizeof hello)) return false;
  if (hello.magic != FENCE_MAGIC || hello.version != FENCE_VERSION) return false;
  const bool worker = hello.role == FENCE_WORKER;
  FenceWelcome welcome = {FENCE_MAGIC,         FENCE_VERSION,
                          refusal_.load(),     worker ? next_slot_ : 0,
                          sizeof(FenceLimits), usage_size_};
  iovec data = {&welcome, sizeof welcome};
  const int fds[] = {limits_fd_, usage_fd_};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fds)] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (welcome.refusal == FENCE_ACCEPTED) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof fds);
    std::memcpy(CMSG_DATA(rights), fds, sizeof fds);
  }
  if (::sendmsg(client, &message, MSG_NOSIGNAL) < 0) return false;
  ++attached_;
  if (!worker || welcome.refusal != FENCE_ACCEPTED) return false;
  process(next_slot_++);
  return true;
}

bool Host::take_report(int client) {
  FenceReport report{};
  if (::recv(client, &report, sizeof report, MSG_DONTWAIT) != static_cast<ssize_t>(sizeof report))
    return false;
  const std::lock_guard guard(mutex_);
  reports_.push_back(report);
  came_.notify_all();
  return true;
}

void Host::set_gate(std::uint32_t gpu, FenceGate state, std::uint32_t turn) {
  std::uint32_t* gate = &limits_->gpu[gpu].gate;
  __atomic_store_n(gate, (turn << FENCE_TURN_SHIFT) | state, __ATOMIC_SEQ_CST);
  ::syscall(SYS_futex, gate, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

std::vector<FenceReport> Host::reports() const {
  const std::lock_guard guard(mutex_);
  return reports_;
}

bool Host::reported(FenceEvent event, std::size_t times) const {
  std::unique_lock guard(mutex_);
  return came_.wait_for(guard, std::chrono::seconds(10), [&] {
    return static_cast<std::size_t>(
               std::count_if(reports_.begin(), reports_.end(), [&](const FenceReport& report) {
                 return report.event == static_cast<std::uint32_t>(event);
               })) >= times;
  });
}

std::size_t Host::count(FenceEvent event) const {
  const auto all = reports();
  return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [&](const auto& report) {
    return report.event == static_cast<std::uint32_t>(event);
  }));
}

bool Host::eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

FenceUsageRow& Host::row(std::uint32_t gpu, std::uint32_t slot) {
  auto* rows = reinterpret_cast<FenceUsageRow*>(usage_ + 1);
  return rows[static_cast<std::size_t>(gpu) * FENCE_MAX_PROCESSES + slot];
}

FenceProcess& Host::process(std::uint32_t slot) {
  if (limits_->slots_in_use <= slot) limits_->slots_in_use = slot + 1;
  return limits_->process[slot];
}

}  // namespace gantry::fence::test
