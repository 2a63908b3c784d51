// SPDX-License-Identifier: Apache-2.0
#include "sharing/backend/share_device.hpp"

#include "base/sys/kernel.hpp"
#include "container/cdi/read.hpp"
#include "container/cdi/write_spec.hpp"
#include "container/driver_dir/current.hpp"
#include "container/driver_dir/publish.hpp"
#include "container/publish/share_spec.hpp"
#include "container/runtime/injection/low_level_runtime.hpp"
#include "sharing/backend/fence_libraries.hpp"
#include "sharing/backend/host_copy.hpp"
#include "sharing/backend/mps_share.hpp"
#include "sharing/backend/shares.hpp"
#include "sharing/daemon/client.hpp"

#include <fmt/format.h>

namespace gantry::backend {
namespace {

publish::ShareDevice device_of(const policy::Share& share, const sys::Host& host) {
  const bool fenced = share.backend == policy::Backend::Fence;
  publish::ShareDevice device{
      .name = share.name,
      .gpus = share.gpus,
      .directory = fmt::format("{}/{}/fence", daemon::kSharesDirectory, share.name),
      .fenced = fenced ? publish::FenceUse::Yes : publish::FenceUse::No};
  if (!fenced) device.record = policy::to_json(share);
  if (share.backend == policy::Backend::Mps) device.more = mps_edits(host, share.name);
  return device;
}

Result<cdi::Spec> present_spec(const sys::Host& host) {
  const std::string path(publish::kShareSpecPath);
  if (!host.exists(path)) return cdi::Spec{};
  GANTRY_TRY(const auto text, host.read(path, cdi::kMaxSpecBytes));
  return cdi::parse_spec(text, path);
}

Result<std::vector<policy::Share>> kept_shares(const sys::Host& host) {
  std::vector<policy::Share> kept;
  auto client = connect_to_daemon(host);
  if (!client.ok() && client.error().code() == Errc::NotFound) return kept;
  if (!client.ok()) return std::move(client).error();
  GANTRY_TRY(const auto states, client->list());
  for (const auto& state : states) {
    const bool is_slot =
        state.share.name.starts_with(publish::kSlotPrefix);  // belongs to the agent
    if (!state.held && !is_slot) kept.push_back(state.share);
  }
  return kept;
}

}  // namespace

Result<publish::ShareSpecOptions> share_spec_options(const sys::Host& host) {
  GANTRY_TRY(const auto fence, find_fence());
  publish::ShareSpecOptions options;
  GANTRY_TRY(options.cuda_library, path_for_engines(host, fence.cuda));
  GANTRY_TRY(options.nvml_library, path_for_engines(host, fence.nvml));
  options.plan.engine_root = driver_dir::simulated_engine_root(host);
  if (const auto hook = runtime::own_program_path("nvidia-cdi-hook"); !hook.empty()) {
    GANTRY_TRY(options.plan.hook_path, path_for_engines(host, hook));
  }
  return options;
}

std::string device_name(const std::string& share) {
  return fmt::format("{}={}", publish::kShareKind, share);
}

std::vector<policy::Share> declared_shares(const sys::Host& host) {
  std::vector<policy::Share> shares;
  const auto spec = present_spec(host);
  if (!spec.ok()) return shares;
  for (const auto& device : spec->devices) {
    const auto record = device.annotations.find(std::string(publish::kShareRecordAnnotation));
    if (record == device.annotations.end()) continue;
    if (auto share = policy::share_from_json(record->second); share.ok())
      shares.push_back(*std::move(share));
  }
  return shares;
}

Status check_name_unused(const sys::Host& host, const std::string& name) {
  GANTRY_TRY(const auto shares, list_all_shares(host));
  for (const auto& state : shares) {
    if (state.share.name != name) continue;
    return Error(Errc::Exists, fmt::format("the share {0} already exists; use another name, or "
                                           "remove it with `gantry share rm {0}`",
                                           name));
  }
  return {};
}

Status write_share_devices(const sys::Host& host, const model::Inventory& machine,
                           const policy::Share* added) {
  GANTRY_TRY(const auto options, share_spec_options(host));
  GANTRY_TRY(auto shares, kept_shares(host));
  for (auto& share : declared_shares(host)) shares.push_back(std::move(share));
  if (added != nullptr) shares.push_back(*added);
  std::vector<publish::ShareDevice> devices;
  for (const auto& share : shares) devices.push_back(device_of(share, host));
  if (!devices.empty()) GANTRY_CHECK(driver_dir::publish(host, machine));
  GANTRY_CHECK(publish::write_share_spec(host, machine, devices, options));
  return {};
}

Status remove_share_device(const sys::Host& host, const std::string& share) {
  const std::string path(publish::kShareSpecPath);
  if (!host.exists(path)) return {};
  GANTRY_TRY(auto spec, present_spec(host));
  std::erase_if(spec.devices, [&](const cdi::Device& device) { return device.name == share; });
  if (spec.devices.empty()) return sys::real_kernel()->remove_file(host, path);
  GANTRY_CHECK(cdi::write_spec(host, path, spec, {.apart = publish::kSlotSpecPathPrefix}));
  return {};
}

}  // namespace gantry::backend
