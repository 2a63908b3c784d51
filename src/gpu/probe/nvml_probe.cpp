// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/nvml_probe.hpp"

#include "gpu/probe/nvml_program.hpp"

#include <fmt/format.h>

namespace gantry::probe {
namespace {

NvmlView nvml_failed(std::string why, nvmlReturn_t failure) {
  NvmlView view{.inventory = {}, .failure = failure};
  view.inventory.driver.nvml_error = std::move(why);
  return view;
}

Result<sys::Child> start(const sys::Host& host, const SnapshotOptions& options) {
  GANTRY_TRY(auto command, nvml_command(kViewCommand));
  auto& argv = command.argv;
  const auto more =
      nvml_arguments(host, options.ld_cache, to_argument(options.parts), options.driver);
  argv.insert(argv.end(), more.begin(), more.end());
  auto child = sys::Child::spawn(argv, {.deadline = options.deadline,
                                        .limit_bytes = kNvmlViewLimit,
                                        .program = command.program.get()});
  if (!child.ok()) return nvml_not_started(child.error(), argv[0]);
  return child;
}

}  // namespace

NvmlProbe::NvmlProbe(const sys::Host& host, const SnapshotOptions& options)
    : deadline_(options.deadline), child_(start(host, options)) {}

NvmlView NvmlProbe::join() {
  if (!child_.ok()) return nvml_failed(child_.error().text(), NVML_ERROR_LIBRARY_NOT_FOUND);
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
