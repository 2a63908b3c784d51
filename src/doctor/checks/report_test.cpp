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
using ::testing::StartsWith;

std::vector<CheckResult> look(TestMachine& patient) {
  const auto host = patient.host();
  return run_checks(Facts(host, patient.inventory, patient.sources), all_checks());
}

TEST(Report, EndsWithTheSummaryLine) {
  EXPECT_EQ(summary_line({.ok = 44, .info = 1, .warn = 0, .fail = 0, .skip = 2}),
            "47 checks: 44 ok, 1 info, 0 warn, 0 fail, 2 skipped");
  TestMachine patient;
  const auto outcomes = look(patient);
  EXPECT_THAT(report_text(outcomes, {}),
              ::testing::EndsWith(summary_line(count(outcomes)) + " (--all shows them)\n"));
  EXPECT_THAT(report_text(outcomes, {.detail = Detail::All}),
              ::testing::EndsWith(summary_line(count(outcomes)) + "\n"));
}

TEST(Report, OfAHealthyMachineSaysSoFirst) {
  TestMachine patient;
  EXPECT_THAT(report_text(look(patient), {}), StartsWith("No problem found.\n"));
}

TEST(Report, ExpandsOnlyWhatIsNotWell) {
  TestMachine patient;
  patient.no_node("/dev/nvidia0");
  const auto text = report_text(look(patient), {});
  EXPECT_THAT(text, HasSubstr("fail\n  node.missing  missing: /dev/nvidia0 [H22]\n"));
  EXPECT_THAT(text,
              HasSubstr("    remedy   on that machine: sudo mknod -m 0666 /dev/nvidia0 c 195 0\n"));
  EXPECT_THAT(text, HasSubstr("    fix      sudo gantry doctor --root " + patient.host().root() +
                              " --fix\n"));
  EXPECT_THAT(text, Not(HasSubstr("pci.present"))) << "it passed";
  EXPECT_THAT(text, Not(HasSubstr("kubelet."))) << "skipped";
  const auto all = report_text(look(patient), {.detail = Detail::All});
  EXPECT_THAT(all, HasSubstr("  pci.present"));
  EXPECT_THAT(all, HasSubstr("kubelet."));
  EXPECT_THAT(all, Not(HasSubstr("lspci")));
}

std::size_t occurrences(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST(Report, BeginsWithTheOneFaultOfThreeFailures) {
  TestMachine patient;
  for (const char* path : {"/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"}) {
    patient.no_node(path);
  }
  patient.inventory.driver.nvml_error = "NVML_ERROR_DRIVER_NOT_LOADED";
  const auto outcomes = look(patient);
  ASSERT_EQ(count(outcomes).fail, 3);
  const auto text = report_text(outcomes, {});
  EXPECT_THAT(text, StartsWith("fail\n  node.missing  missing: /dev/nvidia0 and /dev/nvidiactl"));
  EXPECT_EQ(occurrences(text, "    cause "), 1U);
  EXPECT_THAT(text,
              HasSubstr("    hence    node.uvm: missing: /dev/nvidia-uvm\n"
                        "    remedy   on that machine: sudo mknod -m 0666 /dev/nvidia-uvm c "));
  EXPECT_THAT(text, HasSubstr("    hence    nvml.answers: NVML does not answer\n"));
  EXPECT_LE(occurrences(text, "\n"), 20U) << text;
  const auto json = nlohmann::json::parse(report_json(outcomes, {}, detect_guest(patient.host())));
  for (const auto& check : json["checks"]) {
    const bool explained = check["id"] == "nvml.answers" || check["id"] == "node.uvm";
    EXPECT_EQ(check.value("because_of", ""), explained ? "node.missing" : "") << check["id"];
  }
}

// A command is one line, so that it can be pasted.
TEST(Report, FitsTheTerminal) {
  TestMachine patient;
  patient.metal().no_node("/dev/nvidia0").gpu().telemetry.temperature_celsius = 93;
  for (const auto detail : {Detail::Findings, Detail::All}) {
    std::istringstream text(report_text(look(patient), {.width = 60, .detail = detail}));
    for (std::string line; std::getline(text, line);) {
      const bool pasted = line.starts_with("    remedy ") || line.starts_with("    fix ") ||
                          line.starts_with("    by hand ");
      const std::size_t text_at = line.starts_with("    ") && line.size() > 13 ? 13 : 0;
      const bool one_word =
          line.find(' ', line.find_first_not_of(' ', text_at)) == std::string::npos;
      EXPECT_TRUE(pasted || one_word || line.size() <= 60) << line;
    }
  }
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
  const auto text = report_text(look(patient), {.detail = Detail::All});
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
