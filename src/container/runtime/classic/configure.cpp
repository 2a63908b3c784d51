// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/classic/configure.hpp"

#include "base/core/printable.hpp"
#include "base/sys/kernel.hpp"
#include "container/runtime/classic/classic_injection.hpp"
#include "container/runtime/classic/container_process.hpp"
#include "container/runtime/classic/device_cgroup.hpp"

#include <fmt/format.h>

#include <optional>

namespace gantry::runtime {
namespace {

constexpr std::int64_t kRefreshSeconds = 20;
constexpr std::string_view kVersion = "/proc/driver/nvidia/version";

void load_modules(const sys::Host& host, const Log& log) {
  if (host.exists(kVersion)) return;
  const auto kernel = sys::real_kernel();
  for (const char* name : {"nvidia", "nvidia-uvm", "nvidia-modeset"}) {
    const auto loaded = kernel->load_module(host, name);
    // If the driver is missing, a later step reports that with its remedy.
    if (!loaded.ok())
      log.warning(kConfigureComponent, "cannot load a module",
                  {{"module", name}, {"err", loaded.error()}});
  }
}

// The container's own cgroup. If it shares one with us, its rules must not be extended.
Result<std::optional<DeviceCgroup>> cgroup_of(const ContainerProcess& process, const Log& log) {
  GANTRY_TRY(const auto here, sys::Host::at("/"));
  GANTRY_TRY(const auto mounts, here.read("/proc/self/mountinfo"));
  GANTRY_TRY(const auto theirs, process.cgroup());
  GANTRY_TRY(const auto place, device_cgroup(theirs, mounts));
  if (!place) {
    log.info(kConfigureComponent,
             "the container is in the root cgroup, which does not restrict devices");
    return std::optional<DeviceCgroup>();
  }
  GANTRY_TRY(const auto ours, here.read("/proc/self/cgroup"));
  const auto own = device_cgroup(ours, mounts);
  if (own.ok() && *own == place) {
    log.info(kConfigureComponent,
             "the container does not have its own device cgroup; the rules are unchanged",
             {{"cgroup", place->directory}});
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

void log_plan(const ConfigurePlan& planned, const Log& log) {
  for (const auto& mount : planned.edits.mounts) {
    log.info(kConfigureComponent, "mount",
             {{"source", mount.host_path}, {"target", mount.container_path}, {"why", mount.why}});
  }
  for (const auto& node : planned.edits.nodes) {
    log.info(kConfigureComponent, "device node", {{"path", node.path}, {"why", node.why}});
  }
  for (const auto& note : planned.edits.notes)
    log.info(kConfigureComponent, "edits are limited", {{"why", note}});
  for (const auto gid : planned.edits.additional_gids) {
    log.warning(kConfigureComponent,
                "only one group may open some nodes, and a prestart hook cannot add a process to "
                "it; CDI and nvidia-container-runtime can",
                {{"group", gid}});
  }
}

Status allow(const DeviceCgroup& cgroup, const std::vector<DeviceRule>& rules, const Log& log) {
  log.info(kConfigureComponent,
           "editing the device rules of the container; systemd and the runtime do not know this "
           "and may undo it; CDI does not need this edit",
           {{"cgroup", cgroup.place().directory}, {"nodes", rules.size()}});
  for (const auto& rule : rules)
    log.info(kConfigureComponent, "allow", {{"rule", to_devices_allow(rule)}});
  return cgroup.allow(rules);
}

}  // namespace

std::string describe_failure(const Error& error) {
  return fmt::format(
      "nvidia-container-cli: {}\n{}", printable(error.text()),
      error.remedy().empty() ? "Run `gantry doctor` for the cause and the remedy.\n" : "");
}

Status configure(const ConfigureOptions& options, const Log& log) {
  GANTRY_TRY(const auto process, ContainerProcess::open(*options.pid).in("container error"));
  GANTRY_TRY(const auto host,
             sys::Host::at(options.root.empty() ? "/" : options.root).in("initialization error"));
  if (options.load_kernel_modules) load_modules(host, log);
  if (options.user)
    log.info(kConfigureComponent, "--user is ignored: no driver process is started");
  const RefreshFunction refresh = [&] { return refresh_by_gantry(host.root(), kRefreshSeconds); };
  GANTRY_TRY(const auto planned, plan_configure(host, options, refresh, log));
  log_plan(planned, log);
  GANTRY_TRY(const auto work, work_for(host, options, planned).in("mount error"));
  std::optional<DeviceCgroup> cgroup;
  if (!options.no_cgroups) {
    GANTRY_TRY(cgroup, cgroup_of(process, log).in("container error"));
  }
  GANTRY_TRY(const auto notes, inject_into(process, work));
  for (const auto& note : notes)
    log.info(kConfigureComponent, "injection is limited", {{"why", note}});
  if (!cgroup) return {};
  return allow(*cgroup, work.rules, log).in("container error");
}

}  // namespace gantry::runtime
