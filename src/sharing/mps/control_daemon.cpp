// SPDX-License-Identifier: Apache-2.0
#include "sharing/mps/control_daemon.hpp"

#include "base/core/text.hpp"
#include "base/sys/child.hpp"
#include "base/sys/replace_file.hpp"
#include "gpu/driver/root.hpp"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <filesystem>

namespace gantry::mps {
namespace {

using namespace std::chrono_literals;

constexpr std::array<std::string_view, 5> kDirectories{
    "/usr/bin", "/usr/local/bin", "/usr/local/nvidia/bin", "/home/kubernetes/bin/nvidia/bin",
    "/opt/nvidia/bin"};
constexpr auto kDeadline = 30s;  // a daemon starts in milliseconds, but a driver may take long

Status make_directory(const std::string& path, mode_t mode) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return Error::sys(error.value(), "mkdir").in(path);
  if (::chmod(path.c_str(), mode) != 0) return Error::sys(errno, "chmod").in(path);
  return {};
}

// In the child, after fork: only system calls. The child has its own mount namespace, in which
// /dev/shm is the directory that clients see as /dev/shm, and its root is the machine's.
bool move_in(const char* shm, const char* own_shm, const char* root) {
  if (::unshare(CLONE_NEWNS) != 0) return false;
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  if (::mount(shm, own_shm, nullptr, MS_BIND, nullptr) != 0) return false;
  if (*root == '\0') return true;
  return ::chroot(root) == 0 && ::chdir("/") == 0;
}

}  // namespace

Result<ControlDaemon> ControlDaemon::find(const sys::Host& host, std::string mps_root,
                                          RunMode enter) {
  for (const auto directory : kDirectories) {
    if (host.info(fmt::format("{}/{}", directory, kControlProgram)).ok())
      return ControlDaemon(host, std::move(mps_root), std::string(directory), enter);
  }
  return Error(Errc::NotFound,
               fmt::format("MPS needs {}, which is not in {} on this machine; install the driver's "
                           "compute utilities (nvidia-compute-utils, nvidia-cuda-mps), or use "
                           "sharing.timeSlicing, which needs no daemon",
                           kControlProgram, fmt::join(kDirectories, ", ")));
}

std::string ControlDaemon::daemon_path(const std::string& path) const {
  return run_mode_ == RunMode::Direct ? host_->outside(path) : path;
}

std::string ControlDaemon::library_path() const {
  std::vector<std::string> paths;
  for (const auto& directory : driver::find_root(*host_).directories)
    paths.push_back(daemon_path(directory.path));
  return fmt::format("{}", fmt::join(paths, ":"));
}

std::string ControlDaemon::resource_path(const std::string& resource, std::string_view name) const {
  return fmt::format("{}/{}/{}", mps_root_, resource, name);
}

Status ControlDaemon::make_directories(const std::string& resource) const {
  GANTRY_CHECK(make_directory(host_->outside(mps_root_ + "/shm"), 01777));
  GANTRY_CHECK(make_directory(host_->outside(resource_path(resource, "pipe")), 0755));
  return make_directory(host_->outside(resource_path(resource, "log")), 0755);
}

Result<std::string> ControlDaemon::run(const std::vector<std::string>& argv,
                                       const std::string& resource, const std::string& input,
                                       const std::vector<std::string>& environment) const {
  const auto shm = host_->outside(mps_root_ + "/shm");
  const bool change_root = run_mode_ == RunMode::Chroot && !host_->is_live();
  const std::string root = change_root ? host_->root() : "";
  const auto own_shm = root + "/dev/shm";
  auto words = argv;
  words[0] = daemon_path(fmt::format("{}/{}", directory_, argv[0]));
  sys::CommandOptions options{
      .deadline = kDeadline,
      .input = input,
      .environment = {"PATH=/usr/local/nvidia/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                      "LD_LIBRARY_PATH=" + library_path_,
                      "CUDA_MPS_PIPE_DIRECTORY=" + daemon_path(resource_path(resource, "pipe")),
                      "CUDA_MPS_LOG_DIRECTORY=" + daemon_path(resource_path(resource, "log"))},
      .before = [&] { return move_in(shm.c_str(), own_shm.c_str(), root.c_str()); }};
  options.environment.insert(options.environment.end(), environment.begin(), environment.end());
  GANTRY_TRY(auto done, sys::run_command(words, options));
  if (done.status == 0) return std::move(done.output);
  return Error(Errc::Internal, fmt::format("{} ended with status {}: {}", fmt::join(argv, " "),
                                           done.status, trim(done.output)));
}

Result<std::string> ControlDaemon::send_command(const std::string& resource,
                                                const std::string& command) const {
  return run({std::string(kControlProgram)}, resource, command + "\n").in(command);
}

Status ControlDaemon::check(const std::string& resource) const {
  GANTRY_TRY(const auto said, send_command(resource, "get_default_active_thread_percentage"));
  return {};
}

Status ControlDaemon::set_compute_mode(const DaemonPlan& plan, std::string_view mode) const {
  for (const auto& gpu : plan.gpus) {
    GANTRY_TRY(const auto said,
               run({"nvidia-smi", "-i", gpu.uuid.text, "-c", std::string(mode)}, plan.resource, "")
                   .in("setting the compute mode"));
  }
  return {};
}

// Only the GPUs of the resource: a server takes a context on every GPU that it sees, which fails on
// one that belongs to another daemon's server.
Status ControlDaemon::start_daemon(const DaemonPlan& plan) const {
  std::vector<std::string> uuids;
  for (const auto& gpu : plan.gpus) uuids.push_back(gpu.uuid.text);
  GANTRY_TRY(const auto said, run({std::string(kControlProgram), "-d"}, plan.resource, "",
                                  {fmt::format("CUDA_VISIBLE_DEVICES={}", fmt::join(uuids, ","))})
                                  .in("starting the MPS daemon"));
  return {};
}

Status ControlDaemon::set_limits(const DaemonPlan& plan) const {
  for (std::size_t i = 0; i < plan.gpus.size(); ++i) {
    if (plan.gpus[i].memory_mib == 0) continue;
    GANTRY_TRY(const auto said,
               send_command(plan.resource, fmt::format("set_default_device_pinned_mem_limit {} {}M",
                                                       i, plan.gpus[i].memory_mib)));
  }
  GANTRY_TRY(const auto said,
             send_command(plan.resource, fmt::format("set_default_active_thread_percentage {}",
                                                     plan.thread_percentage)));
  return {};
}

Status ControlDaemon::start(const DaemonPlan& plan) const {
  GANTRY_CHECK(make_directories(plan.resource).in(plan.resource));
  GANTRY_CHECK(set_compute_mode(plan, "EXCLUSIVE_PROCESS").in(plan.resource));
  if (!check(plan.resource).ok()) GANTRY_CHECK(start_daemon(plan).in(plan.resource));
  GANTRY_CHECK(set_limits(plan).in(plan.resource));
  GANTRY_CHECK(check(plan.resource).in(plan.resource));
  return sys::replace_file(host_->outside(resource_path(plan.resource, ".started")), "", 0644,
                           sys::Durability::Volatile);
}

Status ControlDaemon::stop(const DaemonPlan& plan) const {
  ::unlink(host_->outside(resource_path(plan.resource, ".started")).c_str());
  GANTRY_TRY(const auto said, send_command(plan.resource, "quit").in(plan.resource));
  return set_compute_mode(plan, "DEFAULT").in(plan.resource);
}

void ControlDaemon::clear(const DaemonPlan& plan) const {
  (void)stop(plan).ok();
  (void)set_compute_mode(plan, "DEFAULT").ok();
  std::error_code ignored;
  std::filesystem::remove_all(host_->outside(resource_path(plan.resource, "")), ignored);
}

Status ControlDaemon::set_ready(bool ready) const {
  const auto path = host_->outside(mps_root_ + "/.ready");
  if (ready) return sys::replace_file(path, "", 0644, sys::Durability::Volatile);
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  return Error::sys(errno, "unlink").in(path);
}

}  // namespace gantry::mps
