// SPDX-License-Identifier: Apache-2.0
// Any bytes as os-release, and what a distribution's tools say, which comes from foreign programs,
// too. No word of a file becomes an option or a second word of a command.
#include "install/driver_package/distribution.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gantry::driver_package;  // NOLINT: a fuzz target
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto release = parse_os_release(text);
  (void)recognise_clock_fault(text, 1'614'600'000);
  (void)recognise_wrong_suse_url(text, release.ok() ? *release : OsRelease{});
  if (!release.ok()) return 0;
  for (const auto* version : {"", "470", "580.159.04"}) {
    const auto plan = plan_packages(*release, {.version = version, .kernel = "6.4.0-1-default"});
    if (!plan.ok()) continue;
    GANTRY_ASSERT(!plan->steps.empty() && !plan->packages.empty() && !plan->removal.empty());
    for (const auto& step : plan->steps) {
      GANTRY_ASSERT(step.argv.empty() == !step.file.empty());
      for (const auto& word : step.argv)
        GANTRY_ASSERT(!word.empty() && word.find_first_of(" \n;$`") == std::string::npos);
    }
  }
  return 0;
}
