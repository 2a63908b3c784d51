// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/classic/configure.hpp"

#include "base/core/printable.hpp"
#include "base/sys/kernel.hpp"
#include "container/runtime/classic/classic_injection.hpp"
#include "container/runtime/classic/container_process.hpp"
#include "container/runtime/classic/device_cgroup.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <optional>

namespace gantry::runtime {
namespace {

constexpr std::int64_t kRefreshSeconds = 20;
constexpr std::string_view kVersion = "/proc/driver/nvidia/version";

void load_modules(const sys::Host& host, const DebugLog& log) {
  if (host.exists(kVersion)) return;
  const auto kernel = sys::real_kernel();
  for (const char* name : {"nvidia", "nvidia-uvm", "nvidia-modeset"}) {
    const auto loaded = kernel->load_module(host, name);
    // If the driver is missing, a later step reports that with its remedy.
    if (!loaded.ok()) log.write(fmt::format("loading {}: {}", name, loaded.error().text()));
  }
}

// The container's own cgroup. If it shares one with us, its rules must not be extended.
Result<std::optional<DeviceCgroup>> cgroup_of(const ContainerProcess& process,
                                              const DebugLog& log) {
  GANTRY_TRY(const auto here, sys::Host::at("/"));
  GANTRY_TRY(const auto mounts, here.read("/proc/self/mountinfo"));
  GANTRY_TRY(const auto theirs, process.cgroup());
  GANTRY_TRY(const auto place, device_cgroup(theirs, mounts));
  if (!place) {
    log.write("the container is in the root cgroup, which does not restrict devices");
    return std::optional<DeviceCgroup>();
  }
  GANTRY_TRY(const auto ours, here.read("/proc/self/cgroup"));
  const auto own = device_cgroup(ours, mounts);
  if (own.ok() && *own == place) {
    log.write(fmt::format("the container does not have its own device cgroup; {} is unchanged",
                          place->directory));
    return std::optional<DeviceCgroup>();
  }
  GANTRY_TRY(auto opened, DeviceCgroup::open(*place));
  return std::optional(std::move(opened));
}

Result<ClassicInjection> work_for(const sys::Host& host, const ConfigureOptions& options,
                                  const ConfigurePlan& planned) {
  const auto nodes = options.no_device_binds ? NodeBinds::Leave : NodeBinds::Make;
  GANTRY_TRY(auto work, check_sources(planned.edits, nodes));
  GANTRY_TRY(work.loader_binds, check_mount_sources(planned.loader_mounts));
  work.rootfs = options.rootfs;
  if (options.cuda_compat != CudaCompat::Disabled) {
    work.versions = {.driver = planned.driver.version, .cuda = planned.driver.cuda_version};
  }
  work.host = &host;
  return work;
}

void tell(const ConfigurePlan& planned, const DebugLog& log) {
  for (const auto& mount : planned.edits.mounts) {
    log.write(fmt::format("mount {} at {} ({})", mount.host_path, mount.container_path, mount.why));
  }
  for (const auto& node : planned.edits.nodes) {
    log.write(fmt::format("node {} ({})", node.path, node.why));
  }
  for (const auto& note : planned.edits.notes) log.write(note);
  for (const auto gid : planned.edits.additional_gids) {
    log.write(
        fmt::format("only group {} may open some nodes, and a prestart hook cannot add a process "
                    "to it; CDI and nvidia-container-runtime can",
                    gid));
  }
}

Status allow(const DeviceCgroup& cgroup, const std::vector<DeviceRule>& rules,
             const DebugLog& log) {
  log.write(
      fmt::format("editing the device rules of {}: {} nodes, read and write; systemd and the "
                  "runtime do not know this and may undo it; CDI does not need this edit",
                  cgroup.place().directory, rules.size()));
  for (const auto& rule : rules) log.write("allow " + to_devices_allow(rule));
  return cgroup.allow(rules);
}

}  // namespace

void DebugLog::write(std::string_view text) const {
  if (file_.empty()) return;
  const sys::UniqueFd fd(::open(
      file_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644));
  if (!fd.valid()) return;
  auto line = fmt::format("{:%Y-%m-%dT%H:%M:%SZ} nvidia-container-cli[{}] {}",
                          fmt::gmtime(std::time(nullptr)), ::getpid(), text);
  line = printable(line) + '\n';
  (void)!::write(fd.get(), line.data(), line.size());
}

std::string describe_failure(const Error& error) {
  return fmt::format(
      "nvidia-container-cli: {}\n{}", printable(error.text()),
      error.remedy().empty() ? "Run `gantry doctor` for the cause and the remedy.\n" : "");
}

Status configure(const ConfigureOptions& options, const DebugLog& log) {
  GANTRY_TRY(const auto process, ContainerProcess::open(*options.pid).in("container error"));
  GANTRY_TRY(const auto host,
             sys::Host::at(options.root.empty() ? "/" : options.root).in("initialization error"));
  if (options.load_kernel_modules) load_modules(host, log);
  if (options.user) log.write("--user is ignored: no driver process is started");
  const RefreshFunction refresh = [&] { return refresh_by_gantry(host.root(), kRefreshSeconds); };
  GANTRY_TRY(const auto planned, plan_configure(host, options, refresh, log));
  tell(planned, log);
  GANTRY_TRY(const auto work, work_for(host, options, planned).in("mount error"));
  std::optional<DeviceCgroup> cgroup;
  if (!options.no_cgroups) {
    GANTRY_TRY(cgroup, cgroup_of(process, log).in("container error"));
  }
  GANTRY_TRY(const auto notes, inject_into(process, work));
  for (const auto& note : notes) log.write(note);
  if (!cgroup) return {};
  return allow(*cgroup, work.rules, log).in("container error");
}

}  // namespace gantry::runtime
