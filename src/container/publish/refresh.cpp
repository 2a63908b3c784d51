// SPDX-License-Identifier: Apache-2.0
#include "container/publish/refresh.hpp"

#include "container/cdi/write_spec.hpp"
#include "container/driver_dir/current.hpp"
#include "container/driver_dir/garbage.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::publish {
namespace {

// Only NVML knows the names of instances. A specification without them would remove usable devices.
Status check_instances(const model::Inventory& machine) {
  for (const auto& gpu : machine.gpus) {
    const bool nameless = gpu.mig.current == model::MigMode::Enabled && gpu.mig.instances.empty();
    if (!nameless || machine.driver.nvml_error.empty()) continue;
    return Error(Errc::Unsupported,
                 fmt::format("GPU {} has MIG instances that only NVML can name, and NVML did not "
                             "answer: {}; nothing was changed",
                             gpu.index, machine.driver.nvml_error));
  }
  return {};
}

const sys::Host& output_host(const sys::Host& host, const RefreshOptions& options) {
  return options.output_host != nullptr ? *options.output_host : host;
}

cdi::WriteOptions write_options(const RefreshOptions& options) {
  return {.others = options.take_over ? cdi::ExistingSpecPolicy::TakeOver
                                      : cdi::ExistingSpecPolicy::Refuse};
}

}  // namespace

Status check_refresh(const sys::Host& host, const model::Inventory& machine,
                     const RefreshOptions& options) {
  GANTRY_CHECK(check_instances(machine));
  GANTRY_TRY(const auto made, generate_spec(machine, options.spec));
  return cdi::check_spec(output_host(host, options), options.output, made.spec,
                         write_options(options));
}

Result<RefreshResult> refresh(const sys::Host& host, const RefreshOptions& options) {
  GANTRY_TRY(const auto machine, probe::snapshot(host, {.deadline = options.deadline,
                                                        .nvml = options.nvml,
                                                        .driver = options.driver}));
  return refresh_with_inventory(host, machine, options);
}

Result<RefreshResult> refresh_with_inventory(const sys::Host& host, const model::Inventory& machine,
                                             const RefreshOptions& options) {
  GANTRY_CHECK(check_instances(machine));
  GANTRY_TRY(auto made, generate_spec(machine, options.spec));

  RefreshResult done{.devices = made.spec.devices.size(), .notes = std::move(made.notes)};
  GANTRY_TRY(done.driver, driver_dir::publish(host, machine));
  GANTRY_TRY(done.inventory, probe::write_inventory(host, machine));
  GANTRY_TRY(const auto written, cdi::write_spec(output_host(host, options), options.output,
                                                 made.spec, write_options(options)));
  done.spec_changed = written.changed;
  done.moved = written.moved;
  for (const auto& note : written.notes) done.notes.push_back(note);
  // An error of the garbage collection is not fatal: everything that this machine needs exists.
  auto collected = driver_dir::collect_garbage(host);
  if (collected.ok()) {
    done.collected = collected->removed;
    done.notes.insert(done.notes.end(), collected->failed.begin(), collected->failed.end());
  } else {
    done.notes.push_back(collected.error().text());
  }
  return done;
}

}  // namespace gantry::publish
