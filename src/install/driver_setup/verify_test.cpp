// SPDX-License-Identifier: Apache-2.0
#include "install/driver_setup/verify.hpp"

#include "install/driver_setup/machine_for_test.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace gantry::driver_setup {
namespace {

using ::testing::HasSubstr;

// The line about the licence of a driver that was installed by somebody else; "" without one.
std::string licence_line(std::string_view query) {
  SetupMachine machine;
  machine.archive(kNewDriver);
  expect_ok(machine.install(kNewDriver));
  machine.add_packages(kNewDriver);  // nvidia-smi of the distribution
  machine.smi_query = query;
  const InstallRecord foreign{.source = preflight::Source::Packages, .version = kNewDriver};
  const auto report = machine.verify(foreign);
  const auto found = std::find_if(report.items.begin(), report.items.end(),
                                  [](const VerifyItem& item) { return item.code == "licence"; });
  if (found == report.items.end()) return "";
  return fmt::format("{}: {}; {}", to_string(found->state), found->sentence, found->remedy);
}

TEST(Verify, TellsTheLicenceOfADriverThatGantryDidNotInstall) {
  EXPECT_THAT(licence_line("  License Status  : Licensed (Expiry: 2027-8-1 0:0:0 GMT)\n"),
              HasSubstr("ok: licence: Licensed (Expiry: 2027-8-1"));
  EXPECT_THAT(licence_line("  License Status  : Unlicensed (Unrestricted)\n"),
              AllOf(HasSubstr("note: the driver has no licence: Unlicensed"),
                    HasSubstr("systemctl restart nvidia-gridd.service")));
}

TEST(Verify, SaysNothingOfALicenceWhereNoneIsNeeded) {
  EXPECT_EQ(licence_line("  License Status  : N/A\n"), "");
  EXPECT_EQ(licence_line("  Product Name  : Tesla T4\n"), "");
}

}  // namespace
}  // namespace gantry::driver_setup
