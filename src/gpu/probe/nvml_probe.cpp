// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/nvml_probe.hpp"

#include <fmt/format.h>

namespace gantry::probe {
namespace {

NvmlView nvml_failed(std::string why, nvmlReturn_t failure) {
  NvmlView view{.inventory = {}, .failure = failure};
  view.inventory.driver.nvml_error = std::move(why);
  return view;
}

std::string ask(const NvmlProbe::Load& load, const NvmlParts& parts) {
  auto loaded = load();
  if (!loaded.ok())
    return to_bytes(nvml_failed(loaded.error().text(), NVML_ERROR_LIBRARY_NOT_FOUND));
  // Never destroyed: unloading runs the library's own destructors, and the process ends anyway.
  const auto* nvml = new driver::Nvml(*std::move(loaded));
  return to_bytes(read_nvml_view(*nvml, parts));
}

}  // namespace

NvmlProbe::NvmlProbe(const Load& load, const NvmlParts& parts, std::chrono::milliseconds deadline)
    : deadline_(deadline),
      child_(sys::Child::start([&] { return ask(load, parts); },
                               {.deadline = deadline, .limit_bytes = kNvmlViewLimit})) {}

NvmlView NvmlProbe::join() {
  if (!child_.ok()) return nvml_failed(child_.error().text(), NVML_ERROR_UNKNOWN);
  const auto answer = child_->join();
  if (!answer.ok() && answer.error().code() == Errc::Timeout) {
    return nvml_failed(fmt::format("NVML did not answer within {} ms: a GPU or the driver hangs; "
                                   "`dmesg | grep -e NVRM -e Xid` may say why",
                                   deadline_.count()),
                       NVML_ERROR_TIMEOUT);
  }
  if (!answer.ok())
    return nvml_failed(fmt::format("NVML {}", answer.error().text()), NVML_ERROR_UNKNOWN);
  auto view = nvml_view_from(*answer);
  if (!view.ok())
    return nvml_failed(fmt::format("NVML's answer is not valid: {}", view.error().text()),
                       NVML_ERROR_UNKNOWN);
  return *std::move(view);
}

}  // namespace gantry::probe
