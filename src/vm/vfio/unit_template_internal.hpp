// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace gantry::vfio {

// deploy/systemd/gantry-vfio.service, which packages ship too.
std::string_view unit_template();

}  // namespace gantry::vfio
