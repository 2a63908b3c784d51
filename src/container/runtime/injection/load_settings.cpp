// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/injection/load_settings.hpp"

namespace gantry::runtime {

Result<config::Settings> load_settings(const config::EnvironmentLookup& environment) {
  const auto path = config::config_path(environment);
  const bool named = !environment("NVIDIA_CTK_CONFIG_FILE_PATH").value_or("").empty();
  GANTRY_TRY(const auto host,
             sys::Host::at(named ? "/" : environment("GANTRY_ROOT").value_or("/")));
  GANTRY_TRY(auto loaded, config::load(host, path));
  GANTRY_CHECK(config::apply_environment(loaded, environment));
  return loaded;
}

std::string shim_root(const config::Settings& settings) {
  return settings.gantry.root.empty() ? "/" : settings.gantry.root;
}

}  // namespace gantry::runtime
