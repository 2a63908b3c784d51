// SPDX-License-Identifier: Apache-2.0
// What `gantry share serve --root DIR [--until-idle]` is, for tests that cannot have all of gantry.
#include "keeper/client.hpp"
#include "keeper/serve.hpp"

#include <fmt/format.h>

#include <string_view>

int main(int argc, char** argv) {
  if (argc < 3 || std::string_view(argv[1]) != "--root") return 2;
  auto host = gantry::sys::Host::at(argv[2]);
  if (!host.ok()) return 2;
  gantry::sensor::SensorOptions sensor;
  sensor.program = {GANTRY_SENSOR_CHILD, std::string(gantry::sensor::kChildCommand)};
  const bool idle = argc > 3 && std::string_view(argv[3]) == gantry::keeper::kUntilIdle;
  const auto ended = gantry::keeper::serve(
      {.host = *std::move(host),
       .life = idle ? gantry::keeper::Life::UntilIdle : gantry::keeper::Life::UntilSignal,
       .sensor = std::move(sensor)});
  if (!ended.ok()) fmt::print(stderr, "{}\n", ended.error().text());
  return ended.ok() ? 0 : 1;
}
