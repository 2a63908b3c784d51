// SPDX-License-Identifier: Apache-2.0
#include "base/sys/descriptor.hpp"
#include "net/grpc/socket.hpp"
#include "node/kubelet/directory_internal.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace gantry::kubelet {
namespace {

constexpr std::uint32_t kContents = IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM;
constexpr std::uint32_t kItself = IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_Q_OVERFLOW;
constexpr std::size_t kNameLimit = 32;  // a socket's path has at most 107 bytes, with the directory
constexpr std::size_t kEntries = 10'000;

bool is_plugin_socket(std::string_view name) {
  const bool prefixed = name.starts_with(kGantryPrefix) || name.starts_with(kGkePrefix);
  return prefixed && name.ends_with(".sock");
}

// Ignores the checkpoint, which the kubelet rewrites here all the time.
bool is_news(const inotify_event& event) {
  if ((event.mask & kItself) != 0) return true;
  const std::string_view name(event.len > 0 ? event.name : "");
  return name == kKubeletSocket || is_plugin_socket(name);
}

}  // namespace

std::optional<FileId> file_id(const std::string& path) {
  struct stat st {};
  if (::lstat(path.c_str(), &st) != 0) return std::nullopt;
  return FileId{st.st_dev, st.st_ino, st.st_ctim.tv_sec * 1'000'000'000 + st.st_ctim.tv_nsec};
}

bool DirectoryWatch::rewatch() {
  struct stat st {};
  if (::stat(path_.c_str(), &st) != 0 || !S_ISDIR(st.st_mode)) {
    watched_.reset();
    watching_ = false;
    return false;
  }
  const std::pair now{st.st_dev, st.st_ino};
  if (watched_ == now) return true;
  watch_.cancel();
  watching_ = false;
  watched_ = now;
  inotify_ = sys::UniqueFd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  // Without inotify (its instances can be used up), the regular check must suffice.
  if (!inotify_.valid()) return true;
  if (::inotify_add_watch(inotify_.get(), path_.c_str(),
                          kContents | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR) < 0) {
    return true;
  }
  auto watch = loop_.watch(inotify_.get(), EPOLLIN, [this](std::uint32_t) { drain(); });
  watching_ = watch.ok();
  if (watch.ok()) watch_ = *std::move(watch);
  return true;
}

void DirectoryWatch::drain() {
  alignas(inotify_event) std::array<char, 8192> buffer{};
  bool news = false;
  for (int reads = 0; reads < 64; ++reads) {  // the rest waits for the next turn
    const auto got = ::read(inotify_.get(), buffer.data(), buffer.size());
    if (got <= 0) break;
    for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof event);
      const auto* whole = reinterpret_cast<const inotify_event*>(buffer.data() + at);
      news = news || is_news(*whole);
      if ((event.mask & kItself) != 0) watched_.reset();
      at += sizeof event + event.len;
    }
  }
  if (news) on_change_();
}

void remove_stale_sockets(const std::string& directory) {
  sys::UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return;
  const auto names = sys::list_directory(std::move(fd), kEntries, directory);
  if (!names.ok()) return;
  for (const auto& name : *names) {
    const auto path = fmt::format("{}/{}", directory, name);
    struct stat st {};
    if (!is_plugin_socket(name) || ::lstat(path.c_str(), &st) != 0 || !S_ISSOCK(st.st_mode))
      continue;
    // Connects instead of checking the pid: in a pod every agent has the same pid.
    const auto answer = grpc::connect_unix(path);
    if (!answer.ok() && answer.error().sys_errno() == ECONNREFUSED) ::unlink(path.c_str());
  }
}

std::string socket_name(std::string_view resource, std::uint64_t number) {
  std::string name;
  for (const char c : resource.substr(resource.rfind('/') + 1).substr(0, kNameLimit)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '-' || c == '_';
    name.push_back(plain ? c : '_');
  }
  return fmt::format("{}{}-{}-{:x}.sock", kGantryPrefix, name, ::getpid(), number);
}

std::string gke_socket_name(std::int64_t unix_seconds) {
  return fmt::format("{}{}.sock", kGkePrefix, unix_seconds);
}

}  // namespace gantry::kubelet
