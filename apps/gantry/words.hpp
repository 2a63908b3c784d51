// SPDX-License-Identifier: Apache-2.0
// The model's values in the words people know from nvidia-smi.
#pragma once

#include "gpu/model/inventory.hpp"

#include <string>

namespace gantry::cli {

std::string known_word(const std::string& text);        // "?" for nothing
std::string numa_word(const std::optional<int>& node);  // "0", "unknown" for sysfs's -1
std::string mig_word(const model::Mig& mig);            // "-", "off", "on", "on, 7 instances"
std::string health_word(const model::Health& health);   // "ok", "degraded: reason", ...
std::string memory_word(const std::optional<std::uint64_t>& bytes);  // "143771 MiB"
std::string link_word(const model::Link& link);                      // "X", "NV18", "PIX"
std::string capability_words(const model::DriverFile& file);         // "compute,utility"
std::string kind_word(model::FileKind kind);
std::string flavour_word(model::ModuleFlavour flavour);

}  // namespace gantry::cli
