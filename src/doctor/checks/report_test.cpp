// SPDX-License-Identifier: Apache-2.0
#include "doctor/engine/report.hpp"

#include "doctor/checks/all_checks.hpp"
#include "doctor/checks/machine_for_test.hpp"
#include "support/paths.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <sstream>

namespace gantry::doctor {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<CheckResult> look(TestMachine& patient) {
  const auto host = patient.host();
  return run_checks(Facts(host, patient.inventory, patient.sources), all_checks());
}

TEST(Report, EndsWithTheSummaryLine) {
  EXPECT_EQ(summary_line({.ok = 44, .info = 1, .warn = 0, .fail = 0, .skip = 2}),
            "47 checks: 44 ok, 1 info, 0 warn, 0 fail, 2 skipped");
  TestMachine patient;
  const auto outcomes = look(patient);
  EXPECT_THAT(report_text(outcomes, {}), ::testing::EndsWith(summary_line(count(outcomes)) + "\n"));
}

TEST(Report, ExpandsOnlyWhatIsNotWell) {
  TestMachine patient;
  patient.no_node("/dev/nvidia0");
  const auto text = report_text(look(patient), {});
  EXPECT_THAT(text, HasSubstr("fail\n  node.missing  missing: /dev/nvidia0 [H22]\n"));
  EXPECT_THAT(text, HasSubstr("    remedy   sudo mknod -m 0666 /dev/nvidia0 c 195 0\n"));
  EXPECT_THAT(text, HasSubstr("    fix      sudo gantry doctor --root " + patient.host().root() +
                              " --fix\n"));
  EXPECT_THAT(text, HasSubstr("  pci.present"));
  EXPECT_THAT(text, Not(HasSubstr("lspci")));
}

// sudo keeps no GANTRY_ROOT: without the flag the fix of a tree would change the machine itself.
TEST(Report, NamesTheMachineInTheCommandsItOffers) {
  TestMachine patient;
  const auto tree = patient.host();
  const auto here = sys::Host::at("/");
  ASSERT_TRUE(here.ok());
  EXPECT_EQ(fix_command(*here, "node.mode"), "gantry doctor --fix=node.mode");
  EXPECT_EQ(fix_command(*here, ""), "gantry doctor --fix");
  EXPECT_EQ(fix_command(tree, "node.mode"),
            "gantry doctor --root " + tree.root() + " --fix=node.mode");
  patient.no_node("/dev/nvidia0");
  const auto json =
      nlohmann::json::parse(report_json(look(patient), {}, detect_guest(patient.host())));
  for (const auto& check : json["checks"]) {
    const bool offered = check["id"] == "node.missing";
    EXPECT_TRUE(!offered || check["fix"] == fix_command(tree, ""));
    EXPECT_TRUE(check["verdict"] != "ok" || check["fix"].is_null()) << check["id"];
  }
}

TEST(Report, QuotesAPathThatAShellWouldSplit) {
  test::Tree tree;
  tree.directory("it's a machine");
  const auto host = sys::Host::at(tree.path("it's a machine"));
  ASSERT_TRUE(host.ok());
  EXPECT_THAT(fix_command(*host, ""), HasSubstr("/it'\\''s a machine' --fix"));
}

TEST(Report, ColoursOnlyWhenAsked) {
  TestMachine patient;
  const auto outcomes = look(patient);
  EXPECT_THAT(report_text(outcomes, {}), Not(HasSubstr("\033[")));
  EXPECT_THAT(report_text(outcomes, {.color = true}), HasSubstr("\033["));
}

TEST(Report, KeepsItsJsonKeys) {
  TestMachine patient;
  const auto outcomes = look(patient);
  const auto host = patient.host();
  const auto json = nlohmann::json::parse(report_json(outcomes, {}, detect_guest(host)));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["guest"]["virtual"], true);
  EXPECT_EQ(json["summary"]["checks"], all_checks().size());
  for (const auto& check : json["checks"]) {
    for (const char* key :
         {"id", "reference", "area", "title", "verdict", "summary", "read", "fix_class"}) {
      EXPECT_TRUE(check.contains(key)) << key;
    }
    if (check["id"] != "numa.unknown") continue;
    EXPECT_EQ(check["verdict"], "info");
    EXPECT_THAT(check["cause"].get<std::string>(), HasSubstr("TensorFlow"));
  }
}

TEST(Report, LetsNoFileCommandTheTerminal) {
  TestMachine patient;
  patient.metal().tree.file("proc/cmdline", "quiet \033[2J\n");
  const auto text = report_text(look(patient), {});
  EXPECT_THAT(text, HasSubstr("/proc/cmdline: quiet \\x1b[2J"));
  EXPECT_THAT(text, Not(HasSubstr("\033")));
}

TEST(Report, SurvivesBytesThatAreNoText) {
  TestMachine patient;
  patient.pci("numa_node", "\xff\xfe\n");
  const auto host = patient.host();
  const auto text = report_json(look(patient), {}, detect_guest(host));
  EXPECT_TRUE(nlohmann::json::accept(text));
}

TEST(Report, SaysWhatAFixDidAndWhatFailed) {
  const auto* check = find_check("node.missing");
  const FixReport fix{
      .check = check,
      .state = FixState::Failed,
      .steps = {{"mkdir -p /dev/nvidia-caps", ""}, {"mknod x", "mknod: not permitted"}},
      .after = Verdict::Fail,
      .text = ""};
  const auto text = fixes_text({fix}, {});
  EXPECT_THAT(text, HasSubstr("node.missing  failed, now fail"));
  EXPECT_THAT(text, HasSubstr("did    mkdir -p /dev/nvidia-caps"));
  EXPECT_THAT(text, HasSubstr("FAILED mknod x: mknod: not permitted"));
}

// `gantry doctor --list --markdown` writes the table; see the end of docs/doctor.md.
TEST(Documentation, HasTheCurrentTableOfChecks) {
  std::ifstream file(test::source_dir() + "/docs/doctor.md");
  ASSERT_TRUE(file.good());
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_THAT(text.str(), HasSubstr(list_markdown(all_checks())))
      << "run: tools/update_doctor_table BUILD_DIRECTORY/bin/gantry";
}

}  // namespace
}  // namespace gantry::doctor
