// SPDX-License-Identifier: Apache-2.0
#include "refresh/share_spec.hpp"

#include "cdi/convert.hpp"
#include "cdi/write_spec.hpp"
#include "plan/fence.hpp"
#include "plan/select.hpp"
#include "sys/kernel.hpp"

#include <fmt/format.h>

namespace gantry::refresh {
namespace {

Result<cdi::Device> device_of(const model::Inventory& machine, const ShareDevice& share,
                              const ShareSpecOptions& options) {
  std::vector<std::string> ids;
  for (const auto& gpu : share.gpus) ids.push_back(gpu.text);
  model::Request request{.source = model::RequestSource::CommandLine, .devices = ids};
  GANTRY_TRY(auto edits, plan::edits_for(machine, request, options.plan));
  if (share.fenced == Fenced::Yes) {
    GANTRY_CHECK(plan::add_fence(machine, options.plan,
                                 {.share = share.name,
                                  .directory = share.directory,
                                  .cuda_library = options.cuda_library,
                                  .nvml_library = options.nvml_library},
                                 edits));
  }
  plan::append(edits, share.more);
  cdi::Device device{.name = share.name, .annotations = {}, .edits = cdi::from_edits(edits).edits};
  if (!share.record.empty()) device.annotations.emplace(kShareRecord, share.record);
  return device;
}

}  // namespace

Result<cdi::Spec> make_share_spec(const model::Inventory& machine,
                                  std::span<const ShareDevice> shares,
                                  const ShareSpecOptions& options) {
  cdi::Spec spec;
  spec.kind = kShareKind;
  for (const auto& share : shares) {
    GANTRY_TRY(auto device, device_of(machine, share, options)
                                .in(fmt::format("the CDI device {}={}", kShareKind, share.name)));
    spec.devices.push_back(std::move(device));
  }
  cdi::tidy(spec);
  return spec;
}

Result<bool> write_share_spec(const sys::Host& host, const model::Inventory& machine,
                              std::span<const ShareDevice> shares,
                              const ShareSpecOptions& options) {
  if (shares.empty()) {
    if (!host.exists(kShareSpecPath)) return false;
    GANTRY_CHECK(sys::real_kernel()->remove_file(host, std::string(kShareSpecPath)));
    return true;
  }
  GANTRY_TRY(const auto spec, make_share_spec(machine, shares, options));
  GANTRY_TRY(const auto written, cdi::write_spec(host, std::string(kShareSpecPath), spec));
  return written.changed;
}

}  // namespace gantry::refresh
