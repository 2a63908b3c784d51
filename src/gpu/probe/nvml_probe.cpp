// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/nvml_probe.hpp"

#include "gpu/model/inventory_json.hpp"

#include <fmt/format.h>

namespace gantry::probe {
namespace {

model::Inventory nvml_failed(std::string why) {
  model::Inventory view;
  view.driver.nvml_error = std::move(why);
  return view;
}

std::string ask(const NvmlProbe::Load& load, const NvmlParts& parts) {
  auto loaded = load();
  if (!loaded.ok())
    return model::to_json(nvml_failed(loaded.error().text()), model::JsonLayout::Compact);
  // Never destroyed: unloading runs the library's own destructors, and the process ends anyway.
  const auto* nvml = new driver::Nvml(*std::move(loaded));
  return model::to_json(read_nvml_view(*nvml, parts), model::JsonLayout::Compact);
}

}  // namespace

NvmlProbe::NvmlProbe(const Load& load, const NvmlParts& parts, std::chrono::milliseconds deadline)
    : deadline_(deadline),
      child_(sys::Child::start([&] { return ask(load, parts); },
                               {.deadline = deadline, .limit_bytes = model::kInventoryJsonLimit})) {
}

model::Inventory NvmlProbe::join() {
  if (!child_.ok()) return nvml_failed(child_.error().text());
  const auto answer = child_->join();
  if (!answer.ok() && answer.error().code() == Errc::Timeout) {
    return nvml_failed(
        fmt::format("NVML did not answer within {} ms: a GPU or the driver hangs; "
                    "`dmesg | grep -e NVRM -e Xid` may say why",
                    deadline_.count()));
  }
  if (!answer.ok()) return nvml_failed(fmt::format("NVML {}", answer.error().text()));
  auto view = model::inventory_from_json(*answer);
  if (!view.ok())
    return nvml_failed(fmt::format("NVML's answer is not valid: {}", view.error().text()));
  return *std::move(view);
}

}  // namespace gantry::probe
