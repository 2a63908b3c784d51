// SPDX-License-Identifier: Apache-2.0
// Formats the model's values as nvidia-smi does.
#pragma once

#include "gpu/model/inventory.hpp"

#include <string>

namespace gantry::cli {

std::string format_known(const std::string& text);        // "?" if empty
std::string format_numa(const std::optional<int>& node);  // "0", "unknown" for sysfs's -1
std::string format_mig(const model::Mig& mig);            // "-", "off", "on, 7 instances"
std::string format_health(const model::Health& health);   // "ok", "degraded: reason", ...
std::string format_memory(const std::optional<std::uint64_t>& bytes);  // "143771 MiB"
std::string format_link(const model::Link& link);                      // "X", "NV18", "PIX"
std::string format_capabilities(const model::DriverFile& file);        // "compute,utility"
std::string format_file_kind(model::DriverFileKind kind);
std::string format_module_flavour(model::ModuleFlavour flavour);

}  // namespace gantry::cli
