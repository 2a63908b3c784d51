// SPDX-License-Identifier: Apache-2.0
#include "container/publish/kinds.hpp"

#include "container/cdi/write_spec.hpp"

#include <fmt/format.h>

namespace gantry::publish {

std::string kind_path(SpecKind kind) {
  return fmt::format("/var/run/cdi/nvidia-{}.yaml", class_of(kind));
}

Result<bool> refresh_kind(const sys::Host& host, const model::Inventory& machine,
                          const SpecOptions& options) {
  GANTRY_TRY(const auto made, make_spec(machine, options));
  GANTRY_TRY(const auto written, cdi::write_spec(host, kind_path(options.kind), made.spec));
  return written.changed;
}

}  // namespace gantry::publish
