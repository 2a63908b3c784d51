// SPDX-License-Identifier: Apache-2.0
// What is kept on disk, and its names.
#include "install/driver_setup/install_journal.hpp"
#include "install/driver_setup/install_plan.hpp"
#include "install/driver_setup/layout.hpp"
#include "install/driver_setup/machine_for_test.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::driver_setup {
namespace {

using preflight::Flavour;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(DriverLayout, NamesAVersionByItsDigestAndFlavour) {
  const auto name = version_name(kNewDriver, "0123456789abcdef", Flavour::Open);
  EXPECT_EQ(name, "580.159.04-0123456789ab-open");
  EXPECT_TRUE(is_version_name(name));
  EXPECT_TRUE(is_version_name("430.26-0123456789ab"));
  for (const auto* other : {"", "-", "580", "580.159.04", "..-0123456789ab", "580-0123456789AB",
                            "580-0123456789ab/..", "580/..-0123456789ab", ".-0123456789ab"})
    EXPECT_FALSE(is_version_name(other)) << other;
}

TEST(DriverLayout, RefusesDirectoriesOfOthers) {
  for (const auto* good : {"/usr/local/nvidia", "/home/kubernetes/bin/nvidia", "/opt/nvidia"})
    EXPECT_TRUE(check_directory(good).ok()) << good;
  for (const auto* bad : {"", "nvidia", "/", "/usr", "/usr/", "/usr/local/../bin", "/tmp/nvidia",
                          "/run/nvidia", "/usr/local/nvidia/", "/a b", "/etc", "/usr/lib"})
    EXPECT_EQ(check_directory(bad).error().code(), Errc::Invalid) << bad;
}

InstallRecord full_record() {
  return {.source = preflight::Source::Run,
          .version = kNewDriver,
          .flavour = Flavour::Open,
          .digest = std::string(64, 'a'),
          .patch_digest = std::string(64, 'b'),
          .url = "https://example.org/x.run",
          .archive = {.path = "/root/x.run", .bytes = 7, .modified_ns = -3},
          .directory = "/opt/nvidia",
          .name = "580.159.04-aaaaaaaaaaaa-open",
          .previous = "460.56-bbbbbbbbbbbb",
          .created = {"/opt/nvidia", "/opt/nvidia/bin"},
          .moved_aside = {"/opt/nvidia/lib64"},
          .added_to_loader_config = true,
          .set_firmware_path = true,
          .firmware_path_before = "/lib/fw",
          .made_cdi = true,
          .removal = {{.argv = {"apt-get", "purge"}, .packages = {"nvidia-smi"}},
                      {.argv = {"rm", "-f", "/etc/y"}, .list = "/etc/y"},
                      {.argv = {}, .file = "/etc/x"},
                      {.argv = {"rpm", "-e"}, .key = std::string(40, 'A')}},
          .packages = {"nvidia-smi 535.183.01-1"},
          .repository_keys = {std::string(40, 'A')},
          .kernel_modules = {"drm", "video"}};
}

TEST(DriverRecord, ComesBackAsItWasWritten) {
  const auto record = full_record();
  EXPECT_EQ(*parse_record(to_json(record)), record);
  EXPECT_EQ(describe(record), "580.159.04 (open)");
}

TEST(DriverRecord, RefusesWhatItDidNotWrite) {
  const auto good = to_json(full_record());
  const auto with = [&](std::string_view from, std::string_view to) {
    auto text = good;
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  for (const auto& bad :
       {std::string(), std::string("{}"), std::string("[1]"),
        with("\"format\": 1", "\"format\": 2"),
        with("580.159.04-aaaaaaaaaaaa-open", "../../../etc"), with("/opt/nvidia\"", "/etc\""),
        with("\"/opt/nvidia/bin\"", "\"/opt/../etc\""), with("\"/opt/nvidia/bin\"", "\"etc\""),
        with("\"source\": \"run\"", "\"source\": \"floppy\""), with("\"open\"", "\"ajar\""),
        with("\"version\": \"580.159.04\"", "\"version\": \"../x\""),
        with("\"/etc/x\"", "\"etc/x\""), with("\"list\": \"/etc/y\"", "\"list\": \"/../y\"")}) {
    const auto parsed = parse_record(bad);
    ASSERT_FALSE(parsed.ok()) << bad;
    EXPECT_EQ(parsed.error().code(), Errc::Corrupt);
  }
}

TEST(DriverJournal, ComesBackAsItWasWritten) {
  InstallJournal journal{
      .command = "install",
      .target = full_record(),
      .before = full_record(),
      .steps = {{.kind = StepKind::Unpack}, {.kind = StepKind::BuildModules, .subject = "6.1.0"}},
      .kernel = "6.1.0",
      .step = 1,
      .backwards = true,
      .placed_version = true,
      .placed_modules = true,
      .unloaded = true,
      .unloaded_modules = {{.name = "nvidia", .path = "/lib/modules/6.1.0/misc/nvidia.ko"},
                           {.name = "nvidia_uvm", .path = ""}},
      .services = {"nvidia-dcgm.service"},
      .licence_files = {"/etc/nvidia/gridd.conf"}};
  EXPECT_EQ(*parse_install_journal(to_json(journal)), journal);
  journal.before.reset();
  EXPECT_EQ(*parse_install_journal(to_json(journal)), journal);
}

TEST(DriverJournal, ADamagedOneIsAnErrorWithARemedy) {
  test::Tree tree;
  tree.file(kJournalPath, "{\"format\": 1");
  const auto read = read_install_journal(tree.host());
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code(), Errc::Corrupt);
  EXPECT_THAT(read.error().text(), HasSubstr("sudo mv "));
  for (const auto* bad : {R"({"format":1,"command":"dance"})", R"({"format":2})", "{}", "null"})
    EXPECT_FALSE(parse_install_journal(bad).ok()) << bad;
}

TEST(StepNames, AreUniqueAndComeBack) {
  for (int kind = 0; kind <= static_cast<int>(StepKind::CleanUp); ++kind) {
    const auto step = static_cast<StepKind>(kind);
    ASSERT_FALSE(to_string(step).empty()) << kind;
    EXPECT_EQ(parse_step_kind(to_string(step)), step);
    EXPECT_THAT(describe({.kind = step, .subject = "6.1.0"}, full_record()), Not(IsEmpty()));
  }
  EXPECT_FALSE(parse_step_kind("").has_value());
}

TEST(SameDriver, NeedsTheSameArchivePatchFlavourAndDirectory) {
  auto record = full_record();
  preflight::DriverRequest request{.directory = "/opt/nvidia"};
  PackageInfo package{.version = kNewDriver, .digest = record.digest};
  const auto same = [&] { return is_same_driver(record, request, package, record.patch_digest); };
  EXPECT_TRUE(same());
  EXPECT_FALSE(is_same_driver(record, request, package, ""));
  request.flavour = Flavour::Proprietary;
  EXPECT_FALSE(same());
  request.flavour = Flavour::Open;
  package.digest = std::string(64, 'c');
  EXPECT_FALSE(same());
  package.digest.clear();
  package.url = record.url;
  EXPECT_TRUE(same());
  request.directory = "/usr/local/nvidia";
  EXPECT_FALSE(same());
  record.source = request.source = preflight::Source::Packages;
  for (const auto* wish : {"", "580", "580.159", "580.159.04"}) {
    package.version = wish;
    EXPECT_TRUE(same()) << wish;
  }
  package.version = "58";
  EXPECT_FALSE(same());
}

}  // namespace
}  // namespace gantry::driver_setup
