// SPDX-License-Identifier: Apache-2.0
// config.toml as text: the default file, changing one key in an existing file, and the effective
// values.
#pragma once

#include "container/config/keys.hpp"

namespace gantry::config {

// The output of `nvidia-ctk config default`: every key with its default; optional keys are
// commented out. Some defaults depend on the distribution of `host`.
std::string default_text(const sys::Host& host);

// Changes one key and leaves the rest of the text as it is. `assignment` is "key=value"; "key"
// alone sets a flag to true; "key=nil" removes the key. NotFound if there is no such key.
Result<std::string> set_in_text(const std::string& text, std::string_view assignment);

enum class Origin : std::uint8_t { Default, File, Environment };
std::string_view to_string(Origin origin);

struct EffectiveValue {
  const Key* key = nullptr;
  std::string value;  // TOML
  Origin origin = Origin::Default;
};

// The effective value of every key: the file overrides the default, the environment the file.
Result<std::vector<EffectiveValue>> effective_values(const LoadedSettings& loaded,
                                                     const EnvironmentLookup& environment);

}  // namespace gantry::config
