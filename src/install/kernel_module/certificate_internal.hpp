// SPDX-License-Identifier: Apache-2.0
// X.509 certificates, as far as the kernel's search for a key needs them.
#pragma once

#include "install/kernel_module/module_trust.hpp"

#include <optional>
#include <string_view>

namespace gantry::kernel_module {

std::optional<EnrolledCertificate> parse_certificate(std::string_view der);

}  // namespace gantry::kernel_module
