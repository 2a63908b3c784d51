// SPDX-License-Identifier: Apache-2.0
#include "runtime/load_settings.hpp"

namespace gantry::runtime {

Result<settings::Settings> load_settings(const settings::Lookup& environment) {
  const auto path = settings::config_path(environment);
  const bool named = !environment("NVIDIA_CTK_CONFIG_FILE_PATH").value_or("").empty();
  GANTRY_TRY(const auto host,
             sys::Host::at(named ? "/" : environment("GANTRY_ROOT").value_or("/")));
  GANTRY_TRY(auto loaded, settings::load(host, path));
  GANTRY_CHECK(settings::apply_environment(loaded, environment));
  return loaded;
}

std::string shim_root(const settings::Settings& settings) {
  return settings.gantry.root.empty() ? "/" : settings.gantry.root;
}

}  // namespace gantry::runtime
