// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace gantry::driver_setup {

// deploy/systemd/gantry-driver.service, which packages ship too.
std::string_view driver_unit_template();

}  // namespace gantry::driver_setup
