// SPDX-License-Identifier: Apache-2.0
#include "install/preflight/judge.hpp"

#include "install/kernel_module/module_image_for_test.hpp"
#include "install/preflight/host_for_test.hpp"
#include "support/paths.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

namespace gantry::preflight {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<FindingCase> all_cases() {
  std::vector<FindingCase> all;
  for (const auto& some :
       {request_cases(), gpu_cases(), kernel_cases(), user_cases(), machine_cases()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

TEST(Judge, FindsNothingAgainstABareMachineThatIsFit) {
  TestHost host;
  const auto findings = host.judge();
  for (const auto& finding : findings)
    EXPECT_EQ(to_string(finding.severity), "notes") << finding.code << ": " << finding.sentence;
  EXPECT_FALSE(blocks(findings));
  EXPECT_TRUE(first_blocker(findings).ok());
  ASSERT_NE(find(findings, "flavour"), nullptr);
  EXPECT_THAT(find(findings, "flavour")->sentence, HasSubstr("open kernel modules"));
}

TEST(Judge, EveryFindingThatCanBeGivenHasACase) {
  std::set<std::string_view> with_case;
  for (const auto& one : all_cases()) with_case.insert(one.code);
  for (const auto& known : known_findings())
    EXPECT_TRUE(with_case.contains(known.code)) << known.code;
  EXPECT_EQ(with_case.size(), known_findings().size());
}

// `gantry driver preflight --list --markdown` prints the table; see the end of docs/driver.md.
TEST(Documentation, HasTheCurrentTableOfFindings) {
  std::ifstream file(test::source_dir() + "/docs/driver.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(text, HasSubstr("\n\n" + known_findings_markdown()))
      << "run: tools/update_driver_table BUILD_DIRECTORY/bin/gantry";
}

TEST(Judge, EveryKnownFindingSaysWhatHelpsInACell) {
  constexpr std::size_t kCell = 80;  // as tools/check_docs wants it
  for (const auto& known : known_findings()) {
    EXPECT_FALSE(known.helps.empty()) << known.code;
    EXPECT_LE(std::max(known.meaning.size(), known.helps.size()), kCell) << known.code;
    EXPECT_EQ(known.helps.find('|'), std::string_view::npos) << known.code;
  }
}

TEST(Judge, PutsBlockersFirst) {
  TestHost host;
  host.remove(fmt::format("/lib/modules/{}/build", kTestKernel)).remove("/usr/bin/make");
  host.remove(fmt::format("/usr/src/linux-headers-{}", kTestKernel));
  host.file("/etc/modprobe.d/old.conf", "blacklist nvidia\n");
  const auto findings = host.judge();
  ASSERT_GE(findings.size(), 3U);
  EXPECT_EQ(findings[0].severity, Severity::Blocks);
  EXPECT_EQ(findings[1].severity, Severity::Blocks);
  EXPECT_EQ(findings[2].severity, Severity::Warns);
}

TEST(Judge, AllowsWorkForAnotherKernelWhereThisOneLoadsNoModules) {
  TestHost host;
  host.file("/proc/sys/kernel/modules_disabled", "1\n");
  EXPECT_NE(find(host.judge(), "modules-disabled"), nullptr);
  host.request.kernel = "6.1.0-22-amd64";
  EXPECT_EQ(find(host.judge(), "modules-disabled"), nullptr);
  host.request.kernel = kTestKernel;
  EXPECT_NE(find(host.judge(), "modules-disabled"), nullptr);
}

TEST(Judge, TheFirstBlockerIsAnErrorThatCountsTheOthers) {
  TestHost host;
  host.remove("/usr/bin/make").remove("/usr/bin/ld");
  const auto status = first_blocker(host.judge());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Errc::Unsupported);
  EXPECT_THAT(status.error().cause(), HasSubstr("make is not installed"));
  EXPECT_THAT(status.error().cause(), HasSubstr("(1 more finding blocks the installation"));
  EXPECT_THAT(status.error().remedy(), HasSubstr("sudo apt-get install make"));
}

TEST(Judge, AGpuInUseIsBusy) {
  TestHost host;
  host.loaded().process(4711, "python3").opens(4711, "/dev/nvidia0");
  EXPECT_EQ(first_blocker(host.judge()).error().code(), Errc::Busy);
}

TEST(Judge, ABlockerCanBeIgnoredByItsCode) {
  TestHost host;
  host.remove("/usr/bin/make");
  host.request.ignore = {"make-missing"};
  const auto findings = host.judge();
  EXPECT_FALSE(blocks(findings));
  EXPECT_EQ(find(findings, "make-missing")->severity, Severity::Warns);
}

TEST(Judge, AProcessOfAUserCannotBeIgnored) {
  TestHost host;
  host.loaded().process(4711, "python3").opens(4711, "/dev/nvidia0");
  host.request.ignore = {"gpu-in-use"};
  EXPECT_TRUE(blocks(host.judge()));
}

TEST(Judge, NoProcessIsInTheWayOfTheDriverThatIsLoaded) {
  TestHost host;
  host.loaded("580.159.04").process(4711, "python3").opens(4711, "/dev/nvidia0");
  const auto findings = host.judge();
  EXPECT_EQ(find(findings, "gpu-in-use"), nullptr);
  EXPECT_EQ(find(findings, "driver-will-be-replaced"), nullptr);
}

TEST(Judge, BuildsNothingForPrecompiledModules) {
  TestHost host;
  host.remove("/usr/bin/make").remove("/usr/bin/gcc").remove("/usr/bin/gcc-12");
  host.request.source = Source::Precompiled;
  host.request.trust_modules_without_digest = true;
  host.sources.modules = host.request.modules = "/root/ko";
  host.file("/root/ko/nvidia.ko",
            kernel_module::nvidia_module("nvidia", kTestKernel, "580.159.04", "Dual MIT/GPL"));
  const auto status = first_blocker(host.judge());
  EXPECT_TRUE(status.ok()) << status.error().text();
}

TEST(Judge, AVersionThatIsOnTheMachineNeedsNoDigest) {
  TestHost host;
  host.request.run_file.clear();
  EXPECT_TRUE(blocks(host.judge()));
  host.sources.directory = host.request.directory;
  host.file("/usr/local/nvidia/.versions/580.159.04-0123456789ab-open/bin/nvidia-smi", "");
  EXPECT_THAT(host.facts().placed_versions, testing::SizeIs(1));
  const auto record = [&](std::string_view url, std::string_view name) {
    host.file("/var/lib/gantry/driver-install/installed.json",
              fmt::format(R"({{"version":"580.159.04","url":"{}","digest":"{}","name":"{}"}})", url,
                          std::string(64, 'a'), name));
  };
  const std::string url =
      "https://us.download.nvidia.com/XFree86/Linux-x86_64/580.159.04/"
      "NVIDIA-Linux-x86_64-580.159.04.run";
  record(url, "580.159.04-0123456789ab-open");
  EXPECT_FALSE(blocks(host.judge()));
  host.request.version = "570.1";
  EXPECT_TRUE(blocks(host.judge()));
}

// Who answers at another address decides which bytes have this version.
TEST(Judge, AVersionFromAnotherAddressNeedsADigest) {
  TestHost host;
  host.request.run_file.clear();
  host.sources.directory = host.request.directory;
  host.file("/usr/local/nvidia/.versions/580.159.04-0123456789ab-open/bin/nvidia-smi", "");
  EXPECT_TRUE(find(host.judge(), "download-without-digest") != nullptr) << "placed by a file";
  host.file("/var/lib/gantry/driver-install/installed.json",
            fmt::format(R"({{"version":"580.159.04","url":"https://mirror.example.org/x.run",)"
                        R"("digest":"{}","name":"580.159.04-0123456789ab-open"}})",
                        std::string(64, 'a')));
  EXPECT_TRUE(find(host.judge(), "download-without-digest") != nullptr) << "of a mirror";
}

TEST(Judge, OurOwnContainerIsNotInTheWay) {
  TestHost host;
  const auto cgroup = "0::/system.slice/docker-" + std::string(64, 'c') + ".scope\n";
  host.loaded().process(70, "entrypoint.sh", cgroup).process(71, "gantry", cgroup);
  for (const auto* pid : {"70", "71"})
    host.file(fmt::format("/proc/{}/mountinfo", pid),
              "1 2 8:1 / /usr/local/nvidia rw - ext4 x rw\n");
  EXPECT_EQ(find(host.judge(), "container-has-old-driver"), nullptr);
}

TEST(Judge, SaysOfACompilerInAPodThatTheImageLacksIt) {
  TestHost host;
  host.remove("/usr/bin/gcc-12");
  TestHost image;
  image.remove("/usr/bin/make");
  host.sources.toolchain_root = image.tree().root();
  const auto findings = host.judge();
  ASSERT_NE(find(findings, "make-missing"), nullptr);
  EXPECT_THAT(find(findings, "make-missing")->remedy, HasSubstr("add make to the image"));
}

TEST(Judge, HeadersInTheImageWillDo) {
  TestHost host;
  TestHost image;
  host.remove(fmt::format("/lib/modules/{}/build", kTestKernel));
  host.remove(fmt::format("/usr/src/linux-headers-{}", kTestKernel));
  ASSERT_NE(find(host.judge(), "headers-missing"), nullptr);
  host.sources.toolchain_root = image.tree().root();
  EXPECT_EQ(find(host.judge(), "headers-missing"), nullptr);
}

TEST(Judge, TakesTheHostsCompilerInAPodIfItIsComplete) {
  TestHost host;
  TestHost image;
  image.remove("/usr/bin/make");
  host.sources.toolchain_root = image.tree().root();
  EXPECT_FALSE(host.facts().compiler.from_image);
  EXPECT_EQ(find(host.judge(), "make-missing"), nullptr);
}

// Only daemons of the driver are stopped: a program of Gantry's that computes is somebody's work.
TEST(Judge, AWorkloadOfGantryIsNotAService) {
  TestHost host;
  host.loaded().process(812, "gantry-vector-a").opens(812, "/dev/nvidia0");
  EXPECT_EQ(first_blocker(host.judge()).error().code(), Errc::Busy);
}

TEST(Judge, ADaemonOfTheDriverInAPodIsInTheWay) {
  TestHost host;
  host.loaded()
      .process(812, "nvidia-persistenced",
               "0::/kubepods.slice/kubepods-pod6f9c1d1e_0d5a_4b1e_9a51_0123456789ab.slice/"
               "cri-containerd-" +
                   std::string(64, 'a') + ".scope\n")
      .opens(812, "/dev/nvidia0");
  EXPECT_EQ(first_blocker(host.judge()).error().code(), Errc::Busy);
}

// It brings its own compiler and headers, says its version itself, and is waited for.
TEST(Judge, NvidiasContainerNeedsNothingOfTheHost) {
  TestHost host;
  host.remove("/usr/bin/make").remove("/usr/bin/gcc").remove("/usr/src");
  host.request = {.source = Source::NvidiaContainer};
  const auto status = first_blocker(host.judge());
  EXPECT_TRUE(status.ok()) << status.error().text();
  host.loaded().process(4711, "python3").opens(4711, "/dev/nvidia0");
  EXPECT_EQ(find(host.judge(), "gpu-in-use"), nullptr);
}

TEST(Judge, TheArchiveOfPrecompiledModulesNeedsADigestToo) {
  TestHost host;
  host.request.run_file.clear();
  host.request.source = Source::Precompiled;
  host.request.trust_modules_without_digest = true;
  EXPECT_NE(find(host.judge(), "download-without-digest"), nullptr);
}

TEST(Judge, RemediesForAnotherMachineSaySo) {
  TestHost host;
  host.remove("/usr/bin/make");
  host.tree().remove("/.gantry-sim");
  auto findings = host.judge();
  address_remedies(host.tree().host(), findings);
  EXPECT_THAT(find(findings, "make-missing")->remedy, HasSubstr("on that machine: sudo apt-get"));
}

// `gantry sim inject clear` would repair none of these: nothing was injected.
TEST(Judge, RemediesForASimulatedMachineAreThoseOfARealOne) {
  TestHost host;
  host.remove("/usr/bin/make");
  host.request.sign_key = "/key.pem";
  ASSERT_TRUE(host.tree().host().exists("/.gantry-sim"));
  auto findings = host.judge();
  address_remedies(host.tree().host(), findings);
  EXPECT_THAT(find(findings, "make-missing")->remedy, HasSubstr("on that machine: sudo apt-get"));
  EXPECT_EQ(find(findings, "signing-incomplete")->remedy,
            "give both --sign-key and --sign-certificate");
}

TEST(Report, TextHasAParagraphForEachFindingAndAVerdict) {
  TestHost host;
  host.remove("/usr/bin/make");
  const auto facts = host.facts();
  const auto text = to_text(facts, host.request, judge(facts, host.request));
  EXPECT_THAT(text, HasSubstr("driver 580.159.04 (run) on 6.1.0-21-amd64, Debian GNU/Linux 12"));
  EXPECT_THAT(text, HasSubstr("0000:3b:00.0 (Tesla T4, Turing)"));
  EXPECT_THAT(text, HasSubstr("BLOCKS make-missing: make is not installed"));
  EXPECT_THAT(text, HasSubstr("fix: sudo apt-get install make"));
  EXPECT_THAT(text, HasSubstr("cannot be installed: 1 finding blocks it; 0 warnings\n"));
}

TEST(Report, TextOfAFitMachineEndsWithIt) {
  TestHost host;
  const auto facts = host.facts();
  EXPECT_THAT(to_text(facts, host.request, judge(facts, host.request)),
              HasSubstr("can be installed; 0 warnings\n"));
  EXPECT_THAT(facts.notes, IsEmpty());
}

TEST(Report, JsonHasTheCodesAndTheMachine) {
  TestHost host;
  host.remove("/usr/bin/make");
  const auto facts = host.facts();
  const auto json = to_json(facts, host.request, judge(facts, host.request));
  EXPECT_THAT(json, HasSubstr("\"can_install\": false"));
  EXPECT_THAT(json, HasSubstr("\"code\": \"make-missing\""));
  EXPECT_THAT(json, HasSubstr("\"severity\": \"blocks\""));
  EXPECT_THAT(json, HasSubstr("\"device\": \"10de:1eb8\""));
}

TEST(Request, TheVersionMayComeFromTheNameOfTheArchive) {
  DriverRequest request;
  EXPECT_EQ(version_of(request), "");
  request.url = "https://example.org/NVIDIA-Linux-x86_64-460.56.run";
  EXPECT_EQ(version_of(request), "460.56");
  request.version = "470.82.01";
  EXPECT_EQ(version_of(request), "470.82.01");
}

TEST(Request, SourcesHaveNames) {
  for (const auto source :
       {Source::Run, Source::Packages, Source::Precompiled, Source::NvidiaContainer, Source::Grid})
    EXPECT_EQ(parse_source(to_string(source)), source);
  EXPECT_FALSE(parse_source("floppy"));
}

}  // namespace
}  // namespace gantry::preflight
