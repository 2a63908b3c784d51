// SPDX-License-Identifier: Apache-2.0
#include "node/agent/prepare.hpp"

#include "container/plan/capabilities.hpp"
#include "container/publish/other_kinds.hpp"
#include "container/publish/refresh.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::agent {
namespace {

constexpr std::string_view kPrepareComponent = "agent";

void prepare_gpus(const model::Inventory& inventory, const PrepareContext& with) {
  publish::RefreshOptions refresh;
  // The same as in `gantry cdi refresh`: without capabilities, no file of the driver is mounted.
  refresh.spec.capabilities = plan::specification_capabilities();
  refresh.spec.plan.engine_root = with.setting.engine_root;
  const auto done = publish::refresh_with_inventory(with.host, inventory, refresh);
  if (!done.ok())
    return with.log.error(kPrepareComponent, "cannot write the CDI specification",
                          {{"err", done.error()}});
  if (done->spec_changed) ++with.counters.spec_writes;
  with.log.info(kPrepareComponent,
                done->spec_changed ? LogText("wrote the CDI specification")
                                   : LogText("the CDI specification is unchanged"),
                {{"file", refresh.output}, {"devices", done->devices}});
  for (const auto& note : done->notes)
    with.log.detail(1, kPrepareComponent, "the CDI specification is limited", {{"why", note}});
}

bool names_cdi(const resources::AllocatorOptions& setting) {
  const auto by_name = [](options::ListStrategy strategy) {
    return strategy == options::ListStrategy::CdiCri ||
           strategy == options::ListStrategy::CdiAnnotations;
  };
  return std::any_of(setting.strategies.begin(), setting.strategies.end(), by_name);
}

void prepare_kind(const model::Inventory& inventory, publish::SpecOptions spec,
                  const PrepareContext& with) {
  spec.plan.engine_root = with.setting.engine_root;
  const auto path = publish::spec_path(spec.kind);
  const auto changed = publish::refresh_kind(with.host, inventory, spec);
  // Answers leave out what does not exist, and log it there.
  if (!changed.ok() && changed.error().code() == Errc::NotFound) return;
  if (!changed.ok())
    return with.log.error(kPrepareComponent, "cannot write the CDI specification",
                          {{"file", path}, {"err", changed.error()}});
  if (!*changed) return;
  ++with.counters.spec_writes;
  with.log.info(kPrepareComponent, "wrote the CDI specification", {{"file", path}});
}

}  // namespace

void prepare(const model::Inventory& inventory, const PrepareContext& with) {
  if (inventory.gpus.empty()) return;
  prepare_gpus(inventory, with);
  if (!names_cdi(with.setting)) return;
  using enum publish::SpecKind;
  if (with.options.gds) prepare_kind(inventory, {.kind = Gds}, with);
  if (with.options.gdrcopy) prepare_kind(inventory, {.kind = Gdrcopy}, with);
  if (with.options.mofed) prepare_kind(inventory, {.kind = Mofed}, with);
  if (with.options.imex_channels.empty()) return;
  publish::SpecOptions channels{.kind = Imex, .all_device = false};
  for (const auto channel : with.options.imex_channels)
    channels.devices.push_back(fmt::to_string(channel));
  prepare_kind(inventory, std::move(channels), with);
}

}  // namespace gantry::agent
