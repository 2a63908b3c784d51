// SPDX-License-Identifier: Apache-2.0
// The program behind `gantry share serve --root DIR [--until-idle]`, for tests that do not build
// all of gantry.
#include "sharing/daemon/client.hpp"
#include "sharing/daemon/serve.hpp"
#include "support/paths.hpp"

#include <fmt/format.h>

#include <string_view>

int main(int argc, char** argv) {
  if (argc < 3 || std::string_view(argv[1]) != "--root") return 2;
  auto host = gantry::sys::Host::at(argv[2]);
  if (!host.ok()) return 2;
  const bool idle = argc > 3 && std::string_view(argv[3]) == gantry::daemon::kUntilIdle;
  const auto ended = gantry::daemon::serve(
      {.host = *std::move(host),
       .life = idle ? gantry::daemon::Lifetime::UntilIdle : gantry::daemon::Lifetime::UntilSignal,
       .sensor = {}});
  if (!ended.ok()) fmt::print(stderr, "{}\n", ended.error().text());
  return ended.ok() ? 0 : 1;
}
