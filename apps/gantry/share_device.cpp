// SPDX-License-Identifier: Apache-2.0
#include "gantry/share_device.hpp"

#include "cdi/read.hpp"
#include "cdi/write_spec.hpp"
#include "gantry/share_commands.hpp"
#include "prepared/current.hpp"
#include "prepared/publish.hpp"
#include "refresh/share_spec.hpp"
#include "runtime/low_level.hpp"
#include "sys/kernel.hpp"

#include <fmt/format.h>

namespace gantry::cli {
namespace {

refresh::ShareDevice device_of(const share::Share& share) {
  const bool fenced =
      share.backend == share::Backend::Auto || share.backend == share::Backend::Fence;
  return {.name = share.name,
          .gpus = share.gpus,
          .directory = fmt::format("{}/{}/fence", keeper::kShares, share.name),
          .fenced = fenced ? refresh::Fenced::Yes : refresh::Fenced::No};
}

Result<refresh::ShareSpecOptions> spec_options(const sys::Host& host) {
  GANTRY_TRY(auto fence, find_fence());
  refresh::ShareSpecOptions options{.cuda_library = std::move(fence.cuda),
                                    .nvml_library = std::move(fence.nvml)};
  options.plan.engine_root = prepared::engine_root_of(host);
  if (auto hook = runtime::persona_path("nvidia-cdi-hook"); !hook.empty())
    options.plan.hook_path = std::move(hook);
  return options;
}

}  // namespace

std::string device_name(const std::string& share) {
  return fmt::format("{}={}", refresh::kShareKind, share);
}

Status write_devices(keeper::Client& keeper, const sys::Host& host,
                     const model::Inventory& machine) {
  GANTRY_TRY(const auto options, spec_options(host));
  GANTRY_TRY(const auto states, keeper.list());
  std::vector<refresh::ShareDevice> devices;
  for (const auto& state : states) {
    if (!state.held) devices.push_back(device_of(state.share));
  }
  if (!devices.empty()) GANTRY_CHECK(prepared::publish(host, machine));
  GANTRY_CHECK(refresh::write_share_spec(host, machine, devices, options));
  return {};
}

Status withdraw_device(const sys::Host& host, const std::string& share) {
  const std::string path(refresh::kShareSpecPath);
  if (!host.exists(path)) return {};
  GANTRY_TRY(const auto text, host.read(path, cdi::kSpecBytes));
  GANTRY_TRY(auto spec, cdi::parse_spec(text, path));
  std::erase_if(spec.devices, [&](const cdi::Device& device) { return device.name == share; });
  if (spec.devices.empty()) return sys::real_kernel()->remove_file(host, path);
  GANTRY_CHECK(cdi::write_spec(host, path, spec));
  return {};
}

}  // namespace gantry::cli
