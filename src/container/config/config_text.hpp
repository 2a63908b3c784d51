// SPDX-License-Identifier: Apache-2.0
// config.toml as text: the default file, one key set in somebody's file, and what is in force.
#pragma once

#include "container/config/keys.hpp"

namespace gantry::config {

// What `nvidia-ctk config default` prints: every key with its default; those that are optional as
// comments. `host` decides what differs between distributions.
std::string default_text(const sys::Host& host);

// The text with one key changed, all else as it was. `assignment` is "key=value"; "key" alone sets
// a flag to true; "key=nil" takes the key out. NotFound when there is no such key.
Result<std::string> set_in_text(const std::string& text, std::string_view assignment);

enum class Origin : std::uint8_t { Default, File, Environment };
std::string_view to_string(Origin origin);

struct EffectiveValue {
  const Key* key = nullptr;
  std::string value;  // TOML
  Origin origin = Origin::Default;
};

// Every key as it counts: file over default, environment over file.
Result<std::vector<EffectiveValue>> effective_values(const LoadedSettings& loaded,
                                                     const EnvironmentLookup& environment);

}  // namespace gantry::config
