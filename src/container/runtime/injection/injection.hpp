// SPDX-License-Identifier: Apache-2.0
// From a container's config.json to everything that it gets: the request, the policy's word, the
// edits. Changes nothing; the shim acts on it, `gantry explain` prints it.
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

// Where GPUs come from: the host that the settings name, and how to learn it anew.
struct InjectionContext {
  const sys::Host& host;
  const config::Settings& settings;
  RefreshFunction refresh;
};

struct Injection {
  oci::Decision decision;
  model::ContainerEdits edits;
  plan::Flavour flavour = plan::Flavour::NoHooks;
  std::string driver_version;  // "" when nothing is given
  std::string cuda_version;
  std::vector<std::string> notes;
};

class Injector {
 public:
  explicit Injector(InjectionContext surroundings) : context_(std::move(surroundings)) {}

  // The policy's word alone: what it may have of what it asks for.
  Result<oci::Decision> decide(const oci::Container& container);

  // Errors say what was asked and what is there.
  Result<Injection> plan(oci::Decision decision);

  // The same container with another flavour: where the image's loader cache cannot be changed.
  Result<model::ContainerEdits> edits_with(const model::ContainerRequest& request,
                                           plan::Flavour flavour);

 private:
  Result<const Machine*> machine();
  Result<model::ContainerEdits> gpu_edits(const model::ContainerRequest& request,
                                          plan::Flavour flavour);
  // The request with what only a specification knows among the CDI devices; nullopt: there is none.
  std::optional<model::ContainerRequest> with_cdi_names(
      const model::ContainerRequest& request) const;
  Status add_cdi_edits(const model::ContainerRequest& request, model::ContainerEdits& edits) const;
  Status check_known(const model::ContainerRequest& request, const Machine& machine) const;
  oci::RequestLookups lookups();

  InjectionContext context_;
  std::optional<Machine> machine_;
  bool refreshed_ = false;
};

// Numbers, mode and group of every node, from the nodes themselves: majors may have changed since
// the inventory was made. NotFound for one that is gone.
Status fill_device_numbers(const sys::Host& host, std::string_view engine_root,
                           model::ContainerEdits& edits);

// What the engine puts before our paths: nothing on the machine itself.
std::string engine_root(const sys::Host& host);

std::string_view to_string(plan::Flavour flavour);  // "shim", "one-hook", "no-hooks"

}  // namespace gantry::runtime
