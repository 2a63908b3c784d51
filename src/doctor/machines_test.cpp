// SPDX-License-Identifier: Apache-2.0
// Whole simulated machines, read by the probe as real ones are.
#include "doctor/examine.hpp"
#include "probe/snapshot.hpp"
#include "support/machine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace gantry::doctor {
namespace {

using ::testing::HasSubstr;

class Examined {
 public:
  explicit Examined(const test::Machine& machine) {
    const auto host = machine.host();
    const auto inventory = probe::snapshot(host);
    const Sources sources{.caller = {.uid = 0, .groups = {0}, .library_path = ""},
                          .kernel_log = std::nullopt,
                          .free_bytes = nullptr};
    const Facts facts(host, *inventory, sources);
    for (const auto& outcome : examine(facts, all_checks())) {
      findings_[std::string(outcome.check->id)] = outcome.finding;
    }
  }

  Verdict operator[](const std::string& id) { return findings_.at(id).verdict; }

  // "id: summary" of everything that a person would have to look at.
  std::vector<std::string> bad() const {
    std::vector<std::string> found;
    for (const auto& [id, finding] : findings_) {
      if (finding.verdict == Verdict::Warn || finding.verdict == Verdict::Fail) {
        found.push_back(id + ": " + finding.summary);
      }
    }
    return found;
  }

 private:
  std::map<std::string, Finding> findings_;
};

TEST(Machines, AHealthyH200GuestHasNothingWrong) {
  const test::Machine machine("h200");
  Examined found(machine);
  if (test::Machine::has_libraries()) {
    EXPECT_THAT(found.bad(), ::testing::IsEmpty());
  }
  EXPECT_EQ(found["numa.unknown"], Verdict::Info);
  EXPECT_EQ(found["module.refcnt"], Verdict::Info);
  EXPECT_EQ(found["iommu.off"], Verdict::Skip);
}

}  // namespace
}  // namespace gantry::doctor
