// SPDX-License-Identifier: Apache-2.0
#include "container/publish/share_spec.hpp"

#include "base/sys/kernel.hpp"
#include "base/sys/replace_file.hpp"
#include "container/cdi/convert.hpp"
#include "container/cdi/read.hpp"
#include "container/cdi/write_spec.hpp"
#include "container/plan/device_selection.hpp"
#include "container/plan/fence.hpp"

#include <fmt/format.h>

namespace gantry::publish {
namespace {

constexpr std::string_view kSpecDirectory = "/var/run/cdi";
constexpr std::string_view kGantryPrefix = "gantry-";
constexpr std::string_view kJson = ".json";

Result<cdi::Device> device_of(const model::Inventory& machine, const ShareDevice& share,
                              const ShareSpecOptions& options) {
  std::vector<std::string> ids;
  for (const auto& gpu : share.gpus) ids.push_back(gpu.text);
  model::ContainerEdits edits;
  if (!ids.empty()) {
    model::ContainerRequest request{.source = model::RequestSource::CommandLine, .devices = ids};
    GANTRY_TRY(edits, plan::edits_for(machine, request, options.plan));
  }
  if (!ids.empty() && share.fenced == FenceUse::Yes) {
    GANTRY_CHECK(plan::add_fence(machine, options.plan,
                                 {.share = share.name,
                                  .directory = share.directory,
                                  .cuda_library = options.cuda_library,
                                  .nvml_library = options.nvml_library},
                                 edits));
  }
  plan::append(edits, share.more);
  cdi::Device device{
      .name = share.name, .annotations = {}, .edits = cdi::from_container_edits(edits).edits};
  if (!share.record.empty()) device.annotations.emplace(kShareRecordAnnotation, share.record);
  return device;
}

}  // namespace

Result<cdi::Spec> generate_share_spec(const model::Inventory& machine,
                                      std::span<const ShareDevice> shares,
                                      const ShareSpecOptions& options) {
  cdi::Spec spec;
  spec.kind = kShareKind;
  for (const auto& share : shares) {
    GANTRY_TRY(auto device, device_of(machine, share, options)
                                .in(fmt::format("the CDI device {}={}", kShareKind, share.name)));
    spec.devices.push_back(std::move(device));
  }
  cdi::remove_duplicates(spec);
  return spec;
}

std::string slot_spec_path(std::string_view name) {
  return fmt::format("{}/{}{}{}", kSpecDirectory, kGantryPrefix, name, kJson);
}

// Does not read the other specifications, of which there may be hundreds: no other tool uses these
// names.
Result<bool> write_slot_spec(const sys::Host& host, const model::Inventory& machine,
                             const ShareDevice& slot, const ShareSpecOptions& options) {
  GANTRY_TRY(const auto spec, generate_share_spec(machine, {&slot, 1}, options));
  const auto text = cdi::to_text(spec, cdi::Format::Json);
  const auto path = slot_spec_path(slot.name);
  if (const auto known = host.read(path, cdi::kMaxSpecBytes); known.ok() && *known == text)
    return false;
  // If all GPUs of a node are in shares, there may be no other specification. /var/run must lead to
  // /run of the node, not of the pod that we run in.
  GANTRY_CHECK(sys::real_kernel()->make_directory(host, std::string(kSpecDirectory)));
  GANTRY_TRY(const auto directory, host.resolve(kSpecDirectory));
  GANTRY_CHECK(sys::replace_file(host.outside(directory + path.substr(kSpecDirectory.size())), text,
                                 0644, sys::Durability::Volatile));
  return true;
}

Status remove_slot_spec(const sys::Host& host, std::string_view name) {
  const auto path = slot_spec_path(name);
  if (!host.exists(path)) return {};
  return sys::real_kernel()->remove_file(host, path);
}

std::vector<std::string> slot_spec_names(const sys::Host& host) {
  std::vector<std::string> names;
  const auto files = host.list(kSpecDirectory);
  if (!files.ok()) return names;
  const auto begin = fmt::format("{}{}", kGantryPrefix, kSlotPrefix);
  for (const auto& file : *files) {
    if (file.starts_with(begin) && file.ends_with(kJson))
      names.push_back(
          file.substr(kGantryPrefix.size(), file.size() - kGantryPrefix.size() - kJson.size()));
  }
  return names;
}

Result<bool> write_share_spec(const sys::Host& host, const model::Inventory& machine,
                              std::span<const ShareDevice> shares,
                              const ShareSpecOptions& options) {
  if (shares.empty()) {
    if (!host.exists(kShareSpecPath)) return false;
    GANTRY_CHECK(sys::real_kernel()->remove_file(host, std::string(kShareSpecPath)));
    return true;
  }
  GANTRY_TRY(const auto spec, generate_share_spec(machine, shares, options));
  GANTRY_TRY(const auto written, cdi::write_spec(host, std::string(kShareSpecPath), spec,
                                                 {.apart = kSlotSpecPathPrefix}));
  return written.changed;
}

}  // namespace gantry::publish
