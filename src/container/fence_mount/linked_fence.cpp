// SPDX-License-Identifier: Apache-2.0
#include "container/fence_mount/linked_fence.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <utility>

namespace gantry::fence_mount {
namespace {

namespace fs = std::filesystem;

constexpr std::array kLinks = {"socket",
                               "cuda",
                               "nvml",
                               "lib/libcuda.so.1",
                               "lib/libcuda.so",
                               "lib/libnvidia-ml.so.1",
                               "lib/libnvidia-ml.so"};

void remove_links(const std::string& place) {
  for (const char* name : kLinks) ::unlink(fmt::format("{}/{}", place, name).c_str());
  ::rmdir((place + "/lib").c_str());
}

// The command has ended, and its share with it.
bool is_stale(const std::string& place) {
  std::error_code ignored;
  const auto socket = fs::path(place) / "socket";
  return fs::is_symlink(socket, ignored) && !fs::exists(socket, ignored);
}

Status link_to(const std::string& target, const std::string& path) {
  if (target.empty() || ::symlink(target.c_str(), path.c_str()) == 0) return {};
  return Error::sys(errno, fmt::format("symlink {}", path));
}

}  // namespace

Result<LinkedFence> LinkedFence::make(const FenceMounts& e, const std::string& place) {
  std::error_code problem;
  fs::create_directories(place, problem);
  if (problem) return Error::sys(problem.value(), fmt::format("mkdir {}", place));
  if (is_stale(place)) remove_links(place);
  const auto socket = place + "/socket";
  // If two commands start at the same time, the first link decides.
  if (::symlink((e.share + "/socket").c_str(), socket.c_str()) != 0) {
    if (errno != EEXIST) return Error::sys(errno, fmt::format("symlink {}", socket));
    return Error(Errc::Busy,
                 "without its own mounts, only one command at a time can use a share, and another "
                 "command uses one");
  }
  LinkedFence made(place);
  if (::mkdir(made.libraries().c_str(), 0755) != 0 && errno != EEXIST)
    return Error::sys(errno, fmt::format("mkdir {}", made.libraries()));
  const std::array<std::pair<std::string, std::string>, 6> links = {
      {{e.real_cuda, place + "/cuda"},
       {e.real_nvml, place + "/nvml"},
       {e.fence_cuda, made.libraries() + "/libcuda.so.1"},
       {e.fence_cuda, made.libraries() + "/libcuda.so"},
       {e.fence_nvml, made.libraries() + "/libnvidia-ml.so.1"},
       {e.fence_nvml, made.libraries() + "/libnvidia-ml.so"}}};
  for (const auto& [target, path] : links) GANTRY_CHECK(link_to(target, path));
  return made;
}

LinkedFence::~LinkedFence() {
  if (!place_.empty()) remove_links(place_);
}

}  // namespace gantry::fence_mount
