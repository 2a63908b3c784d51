// SPDX-License-Identifier: Apache-2.0
// Computes what a container gets from its config.json: request, policy decision, edits. Changes
// nothing; the shim applies the result, `gantry explain` prints it.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "container/config/settings.hpp"
#include "container/oci/container.hpp"
#include "container/oci/request.hpp"
#include "container/plan/edits.hpp"
#include "container/runtime/injection/machine.hpp"
#include "gpu/model/container_edits.hpp"

#include <optional>
#include <string>
#include <vector>

namespace gantry::runtime {

// The host of the settings, and a function that refreshes its inventory.
struct InjectionContext {
  const sys::Host& host;
  const config::Settings& settings;
  RefreshFunction refresh;
};

struct Injection {
  oci::Decision decision;
  model::ContainerEdits edits;
  plan::Flavour flavour = plan::Flavour::NoHooks;
  std::string driver_version;  // "" if the container gets nothing
  std::string cuda_version;
  std::vector<std::string> notes;
};

class Injector {
 public:
  explicit Injector(InjectionContext surroundings) : context_(std::move(surroundings)) {}

  // Only the policy decision: which of the requested devices the container may have.
  Result<oci::Decision> decide(const oci::Container& container);

  // Errors say what was requested and what exists.
  Result<Injection> plan(oci::Decision decision, const oci::Container& container);

  // The same container with another flavour, for when the image's loader cache cannot be changed.
  Result<model::ContainerEdits> edits_with(const model::ContainerRequest& asked,
                                           plan::Flavour flavour);

 private:
  Result<const Machine*> machine();
  void drop_missing_groups(oci::Decision& decision);
  plan::PlanOptions plan_options(plan::Flavour flavour) const;
  void add_node_hook(const oci::Container& container, Injection& injection) const;
  Result<model::ContainerEdits> gpu_edits(const model::ContainerRequest& request,
                                          plan::Flavour flavour);
  // The CDI names of GPUs in a request.
  std::vector<std::string> gpu_names(const model::ContainerRequest& request) const;
  Status check_requirements(const model::ContainerRequest& request,
                            const std::vector<std::string>& names);
  // The request with the CDI names of GPUs that no specification has as GPUs, to be planned like
  // those of the specification that `gantry cdi refresh` would write.
  Result<model::ContainerRequest> resolve_gpu_names(const model::ContainerRequest& asked);
  // The request with the devices that only a CDI specification knows as CDI devices; nullopt if
  // there are none.
  std::optional<model::ContainerRequest> with_cdi_names(
      const model::ContainerRequest& request) const;
  Status add_cdi_edits(const model::ContainerRequest& request, plan::Flavour flavour,
                       model::ContainerEdits& edits);
  Status add_loader_edits(model::ContainerEdits& edits);
  Status check_known(const model::ContainerRequest& request, const Machine& machine) const;
  oci::RequestLookups lookups();

  InjectionContext context_;
  std::optional<Machine> machine_;
  bool refreshed_ = false;
};

// Reads numbers, mode and group from the nodes themselves, because majors may have changed since
// the inventory was made. NotFound for a missing node.
Status fill_device_numbers(const sys::Host& host, std::string_view engine_root,
                           model::ContainerEdits& edits);

// The engine's prefix for our paths: "" on a real machine.
std::string engine_root(const sys::Host& host);

std::string_view to_string(plan::Flavour flavour);  // "shim", "one-hook", "no-hooks"

}  // namespace gantry::runtime
