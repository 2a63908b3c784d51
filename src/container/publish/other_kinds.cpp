// SPDX-License-Identifier: Apache-2.0
#include "container/publish/other_kinds.hpp"

#include "container/cdi/write_spec.hpp"

#include <fmt/format.h>

namespace gantry::publish {

std::string spec_path(SpecKind kind) {
  return fmt::format("/var/run/cdi/nvidia-{}.yaml", cdi_class(kind));
}

Result<bool> refresh_kind(const sys::Host& host, const model::Inventory& machine,
                          const SpecOptions& options) {
  GANTRY_TRY(const auto made, generate_spec(machine, options));
  GANTRY_TRY(const auto written, cdi::write_spec(host, spec_path(options.kind), made.spec));
  return written.changed;
}

}  // namespace gantry::publish
