// SPDX-License-Identifier: Apache-2.0
#include "container/engines/check.hpp"
#include "support/tree.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::engines {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Verdict = ConfigCheck::Verdict;

constexpr std::string_view kCrioMain = "etc/crio/crio.conf";
constexpr std::string_view kOurProgram = "usr/bin/nvidia-container-runtime";

std::string drop_in(std::string_view name) {
  return fmt::format("etc/crio/crio.conf.d/{}", name);
}

// A table of a runtime, with a key that shows where a copy came from.
std::string runtime(std::string_view name, std::string_view lines) {
  return fmt::format("[crio.runtime.runtimes.{}]\n{}", name, lines);
}

class CrioPlan : public ::testing::Test {
 protected:
  CrioPlan() { tree_.file(kOurProgram); }
  ChangePlan plan(EngineOptions options = {}) {
    options.engine = Engine::Crio;
    auto made = make_plan(tree_.host(), options);
    EXPECT_TRUE(made.ok()) << made.error().text();
    return made.ok() ? *made : ChangePlan{.files = {{}}};
  }
  Error refusal(EngineOptions options = {}) {
    options.engine = Engine::Crio;
    const auto made = make_plan(tree_.host(), options);
    EXPECT_FALSE(made.ok());
    return made.ok() ? Error(Errc::Internal, "") : made.error();
  }
  test::Tree tree_;
};

TEST_F(CrioPlan, ADropInIsACopyOfTheDefaultRuntimeWithOurProgram) {
  tree_.file(kCrioMain, "[crio.runtime]\ndefault_runtime = \"crun\"\n" +
                            runtime("crun",
                                    "runtime_path = \"/usr/bin/crun\"\n"
                                    "runtime_root = \"/run/crun\"\n"
                                    "platform_runtime_paths = {\"os/arch\" = \"/x\"}\n"));
  const auto made = plan({.set_as_default = true});
  ASSERT_EQ(made.files.size(), 1U);
  EXPECT_EQ(made.files[0].path, "/etc/crio/crio.conf.d/99-nvidia.toml");
  EXPECT_EQ(made.files[0].after, R"([crio.runtime.runtimes.nvidia]
runtime_root = "/run/crun"
runtime_path = "/usr/bin/nvidia-container-runtime"
runtime_type = "oci"

[crio.runtime]
default_runtime = "nvidia"
)");
  EXPECT_THAT(made.notes, IsEmpty());
}

TEST_F(CrioPlan, AMachineWithoutFilesGetsTheDropInAlone) {
  EXPECT_EQ(plan({.runtime_path = "/opt/n"}).files[0].after,
            "[crio.runtime.runtimes.nvidia]\nruntime_path = \"/opt/n\"\nruntime_type = \"oci\"\n");
}

// As CRI-O's packages configure it: conmon is not on PATH.
TEST_F(CrioPlan, AChangeOfTheMainFileCopiesFromThatFile) {
  tree_.file(kCrioMain, runtime("crun", "monitor_path = \"/usr/libexec/crio/conmon\"\n"));
  const auto made = plan({.drop_in = ""});
  EXPECT_EQ(made.files[0].path, "/etc/crio/crio.conf");
  EXPECT_THAT(made.files[0].after,
              HasSubstr(runtime("nvidia", "monitor_path = \"/usr/libexec/crio/conmon\"\n")));
}

TEST_F(CrioPlan, ALaterTableOfARuntimeReplacesTheWholeTable) {
  tree_.file(kCrioMain, runtime("crun", "runtime_root = \"/run/crun\"\n"));
  tree_.file(drop_in("10-crun.conf"), runtime("crun", "monitor_path = \"/usr/bin/conmon\"\n"));
  const auto text = plan().files[0].after;
  EXPECT_THAT(text, HasSubstr("monitor_path = \"/usr/bin/conmon\""));
  EXPECT_THAT(text, testing::Not(HasSubstr("runtime_root")));
}

TEST_F(CrioPlan, TheTypeIsCopiedWithTheOptionsThatNeedIt) {
  tree_.file(kCrioMain,
             "[crio.runtime]\ndefault_runtime = \"rs\"\n" +
                 runtime("rs", "runtime_type = \"pod\"\nmonitor_path = \"/opt/conmonrs\"\n"));
  const auto text = plan().files[0].after;
  EXPECT_THAT(text, HasSubstr("runtime_type = \"pod\""));
  EXPECT_THAT(text, HasSubstr("monitor_path = \"/opt/conmonrs\""));
}

TEST_F(CrioPlan, ARuntimeOfVirtualMachinesIsNoModel) {
  const auto kata = runtime("kata", "runtime_type = \"vm\"\nruntime_config_path = \"/k.toml\"\n");
  tree_.file(kCrioMain, "[crio.runtime]\ndefault_runtime = \"kata\"\n" + kata);
  auto made = plan();
  EXPECT_THAT(made.files[0].after, testing::Not(HasSubstr("runtime_config_path")));
  EXPECT_THAT(made.files[0].after, HasSubstr("runtime_type = \"oci\""));
  EXPECT_THAT(made.notes, Contains(HasSubstr("kata starts virtual machines")));

  tree_.file(drop_in("20-youki.conf"), runtime("youki", "monitor_path = \"/opt/conmon\"\n"));
  made = plan();
  EXPECT_THAT(made.files[0].after, HasSubstr("monitor_path = \"/opt/conmon\""));
}

TEST_F(CrioPlan, ARuntimeOfOursThatStartsVirtualMachinesIsRefused) {
  tree_.file(drop_in("99-nvidia.toml"), runtime("nvidia", "runtime_type = \"vm\"\n"));
  const auto error = refusal();
  EXPECT_EQ(error.code(), Errc::Exists);
  EXPECT_THAT(error.text(), HasSubstr("--nvidia-runtime-name"));
}

TEST_F(CrioPlan, OurProgramIsNotReplacedByThatOfTheDefaultRuntime) {
  tree_.file(kCrioMain, runtime("crun", "inherit_default_runtime = true\n"));
  EXPECT_THAT(plan().files[0].after, testing::Not(HasSubstr("inherit")));
  tree_.file(drop_in("99-nvidia.toml"), runtime("nvidia", "inherit_default_runtime = true\n"));
  EXPECT_THAT(plan().files[0].after, HasSubstr("inherit_default_runtime = false"));
}

TEST_F(CrioPlan, ARuntimeOfOursInAnEarlierFileIsCopiedWhole) {
  tree_.file("opt/ncr").file(drop_in("10-gpu.conf"),
                             runtime("nvidia",
                                     "runtime_path = \"/opt/ncr\"\n"
                                     "allowed_annotations = [\"devices.crio.io\"]\n"));
  tree_.file(kCrioMain, runtime("crun", "runtime_root = \"/run/crun\"\n"));
  const auto made = plan();
  EXPECT_EQ(made.files[0].after, runtime("nvidia",
                                         "allowed_annotations = [\"devices.crio.io\"]\n"
                                         "runtime_path = \"/opt/ncr\"\nruntime_type = \"oci\"\n"));
  EXPECT_THAT(made.notes, ElementsAre(HasSubstr("10-gpu.conf has the runtime nvidia")));
}

TEST_F(CrioPlan, NothingIsWrittenThatALaterFileReplaces) {
  tree_.file(drop_in("99-z.conf"), runtime("nvidia", "runtime_path = \"/opt/other\"\n"));
  auto error = refusal();
  EXPECT_EQ(error.code(), Errc::Exists);
  EXPECT_THAT(error.text(), HasSubstr("99-z.conf sets crio.runtime.runtimes.nvidia"));
  EXPECT_THAT(error.remedy(), HasSubstr("--drop-in-config=/etc/crio/crio.conf.d/99-z.conf-nvidia"));

  tree_.file(drop_in("99-z.conf"), "[crio.runtime]\ndefault_runtime = \"runc\"\n");
  EXPECT_THAT(plan().files, testing::SizeIs(1));
  error = refusal({.set_as_default = true});
  EXPECT_THAT(error.text(), HasSubstr("99-z.conf sets crio.runtime.default_runtime"));
  EXPECT_TRUE(
      plan({.drop_in = "/etc/crio/crio.conf.d/99-z.conf-nvidia.toml", .set_as_default = true})
          .changes());
}

TEST_F(CrioPlan, SubdirectoriesAndHiddenFilesAreReadInCriosOrder) {
  tree_.file(drop_in("20-x/.b"), "[crio.runtime]\ndefault_runtime = \"b\"\n" +
                                     runtime("b", "runtime_root = \"/run/b\"\n"));
  tree_.file(drop_in("20-x.conf"), runtime("b", "runtime_root = \"/run/later\"\n"));
  EXPECT_THAT(plan().files[0].after, HasSubstr("runtime_root = \"/run/later\""));
  tree_.remove(drop_in("20-x.conf"));
  EXPECT_THAT(plan().files[0].after, HasSubstr("runtime_root = \"/run/b\""));
}

TEST_F(CrioPlan, AFileThatCrioCannotReadIsNamed) {
  tree_.file(drop_in(".99-nvidia.toml.k3Xz1a"), "[crio.runtime.runtimes.nvi");
  const auto error = refusal();
  EXPECT_EQ(error.code(), Errc::Corrupt);
  EXPECT_THAT(error.text(), HasSubstr("crio.conf.d/.99-nvidia.toml.k3Xz1a"));
}

TEST_F(CrioPlan, ADirectoryOfTooManyFilesIsRefused) {
  for (int i = 0; i < 70; ++i) tree_.file(drop_in(fmt::format("{}.conf", i)));
  EXPECT_EQ(refusal().code(), Errc::Unsupported);
}

TEST_F(CrioPlan, ItsOwnAnswerCanBeTheSource) {
  const auto made = plan({.query_engine = true, .run = [](const auto& words) {
                            EXPECT_EQ(words[1], "status");
                            return Result<std::string>(
                                "level=info msg=\"Drop-in [a]\"\n[crio.runtime]\n"
                                "default_runtime = \"runc\"\n[crio.runtime.runtimes.runc]\n"
                                "runtime_root = \"/r\"\n");
                          }});
  EXPECT_THAT(made.files[0].after, HasSubstr("runtime_root = \"/r\""));
}

TEST_F(CrioPlan, AProgramThatIsMissingIsSaid) {
  EXPECT_THAT(plan({.runtime_path = "/opt/none"}).notes,
              ElementsAre(HasSubstr("/opt/none does not exist; without it CRI-O ignores")));
  EXPECT_THAT(plan({.runtime_path = "/opt/none", .set_as_default = true}).notes,
              ElementsAre(HasSubstr("without it CRI-O does not start")));
  EXPECT_THAT(plan({.mode = IntegrationMode::Hook, .hook_path = "/opt/none"}).notes,
              ElementsAre(HasSubstr("/opt/none does not exist, and crio ignores the hook")));
}

TEST_F(CrioPlan, TheHookGoesWhereHooksAreRead) {
  const EngineOptions hook{.mode = IntegrationMode::Hook, .hook_path = "/opt/hook"};
  tree_.file("opt/hook");
  auto made = plan(hook);
  EXPECT_EQ(made.files[0].path, "/usr/share/containers/oci/hooks.d/oci-nvidia-hook.json");
  EXPECT_THAT(made.restart, IsEmpty());  // CRI-O watches the directory

  tree_.file(drop_in("10.conf"), "[crio.runtime]\nhooks_dir = [\"/opt/hooks\", \"/etc/hooks\"]\n");
  made = plan(hook);
  EXPECT_EQ(made.files[0].path, "/opt/hooks/oci-nvidia-hook.json");
  auto elsewhere = hook;
  elsewhere.drop_in = "/usr/share/containers/oci/hooks.d/a.json";
  EXPECT_THAT(plan(elsewhere).notes,
              ElementsAre(HasSubstr("it reads them in: /opt/hooks, /etc/hooks")));

  tree_.file(drop_in("10.conf"), "[crio.runtime]\nhooks_dir = []\n");
  EXPECT_THAT(refusal(hook).text(), HasSubstr("crio reads no hooks: its hooks_dir is empty"));
}

// As `crio config` of CRI-O 1.36.3 prints it: its log comes first, from some line on without a
// time.
constexpr std::string_view kShown =
    R"(time="2026-11-18T21:24:14.151654425Z" level=info msg="Updating config from single file: /etc/crio/crio.conf"
time="2026-11-18T21:24:14.151746732Z" level=info msg="Skipping not-existing config file \"/etc/crio/crio.conf\""
level=info msg="Using default capabilities: CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FSETID, CAP_KILL"
# The CRI-O configuration file specifies all of the available configuration
[crio]
# root = "/var/lib/containers/storage"
[crio.runtime]
{}
[crio.runtime.runtimes.crun]
runtime_path = ""
runtime_type = "oci"
monitor_env = [
	"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
]
[crio.runtime.runtimes.nvidia]
runtime_path = "{}"
runtime_type = "oci"
runtime_root = ""
inherit_default_runtime = false
container_min_memory = ""
monitor_path = ""
monitor_cgroup = "system.slice"


privileged_without_host_devices = false
)";

RunProgram shows(const std::string& default_line, const std::string& path) {
  return [=](const std::vector<std::string>& words) {
    EXPECT_THAT(words, ElementsAre("crio", "config"));
    return Result<std::string>(fmt::format(fmt::runtime(kShown), default_line, path));
  };
}

class CrioCheck : public CrioPlan {
 protected:
  const std::string ours_ = "/usr/bin/nvidia-container-runtime";
  const std::string chosen_ = "default_runtime = \"nvidia\"";
};

TEST_F(CrioCheck, ReadsWhatCrioPrintsAfterItsLog) {
  const auto result = check(plan(), shows("# default_runtime = \"crun\"", ours_));
  EXPECT_EQ(result.verdict, Verdict::Passed) << result.text;
}

TEST_F(CrioCheck, AnotherProgramOrDefaultIsAFailure) {
  auto result = check(plan(), shows("", "/opt/other"));
  EXPECT_EQ(result.verdict, Verdict::Failed);
  EXPECT_THAT(result.text, HasSubstr("shows nvidia as /opt/other"));
  const auto as_default = plan({.set_as_default = true});
  EXPECT_EQ(check(as_default, shows(chosen_, ours_)).verdict, Verdict::Passed);
  result = check(as_default, shows("default_runtime = \"runc\"", ours_));
  EXPECT_EQ(result.verdict, Verdict::Failed);
  EXPECT_THAT(result.text, HasSubstr("the default runtime runc"));
}

// CRI-O comments what equals its own defaults.
TEST_F(CrioCheck, ADefaultThatIsCriosOwnIsShownAsAComment) {
  const auto as_default = plan({.runtime_name = "crun", .set_as_default = true});
  const auto answer = [&](std::string_view default_line) {
    auto text = fmt::format(fmt::runtime(kShown), default_line, ours_);
    text += "[crio.runtime.runtimes.crun]\nruntime_path = \"" + ours_ + "\"\n";
    text.replace(text.find("[crio.runtime.runtimes.crun]"), 28, "[crio.runtime.runtimes.old]");
    return [text](const auto&) { return Result(text); };
  };
  auto result = check(as_default, answer("# default_runtime is the _name_ of the OCI runtime.\n"
                                         "# default_runtime = \"crun\""));
  EXPECT_EQ(result.verdict, Verdict::Passed) << result.text;
  result = check(as_default, answer("# default_runtime = \"runc\""));
  EXPECT_EQ(result.verdict, Verdict::Failed);
  EXPECT_THAT(result.text, HasSubstr("the default runtime runc"));
  result = check(as_default, answer("default_runtime = \"nvidia\"\n# default_runtime = \"crun\""));
  EXPECT_EQ(result.verdict, Verdict::Failed) << "what is in force is not a comment";
}

TEST_F(CrioCheck, ADefaultRuntimeWithoutAProgramIsAFailure) {
  const auto made = plan({.runtime_path = "/opt/none", .set_as_default = true});
  const auto result = check(made, shows(chosen_, "/opt/none"));
  EXPECT_EQ(result.verdict, Verdict::Failed);
  EXPECT_THAT(result.text, HasSubstr("does not start while the program /opt/none"));
}

TEST_F(CrioCheck, OnlyTheLastWordsOfACrioThatFailsAreShown) {
  const auto result = check(plan(), [](const auto&) {
    return Result<std::string>(Error(Errc::Invalid,
                                     "crio config: level=info msg=\"one\"\n"
                                     "level=fatal msg=\"unable to decode\"\n"));
  });
  EXPECT_EQ(result.verdict, Verdict::Failed);
  EXPECT_EQ(result.text, "level=fatal msg=\"unable to decode\"");
}

// Nothing is put back for words that we cannot read: CRI-O has not refused the file.
TEST_F(CrioCheck, NonsenseIsNotAVerdict) {
  const std::string_view bytes("\x7f\x45LF\0\0[crio", 12);
  for (const auto text : {bytes, std::string_view("<html>502 Bad Gateway</html>\n"),
                          std::string_view("{\"crio\": {\"runtime\": 1}}\n"),
                          std::string_view("[crio.runtime]\nhooks_dir = [\n")}) {
    const auto result = check(plan(), [&](const auto&) { return Result(std::string(text)); });
    EXPECT_EQ(result.verdict, Verdict::NotAsked) << text;
    EXPECT_EQ(result.text, "crio config did not print TOML");
  }
}

TEST_F(CrioCheck, AnAnswerWithoutOurRuntimeIsAFailure) {
  for (const auto* text : {"", "level=info msg=\"one\"\n", "crio = 5\n",
                           "[crio.runtime.runtimes]\nnvidia = \"/usr/bin/runc\"\n",
                           "[crio.runtime.runtimes.nvidia]\nruntime_path = 5\n"}) {
    const auto result = check(plan(), [&](const auto&) { return Result(std::string(text)); });
    EXPECT_EQ(result.verdict, Verdict::Failed) << text;
    EXPECT_EQ(result.text, "crio config has no runtime nvidia");
  }
}

TEST_F(CrioCheck, OtherFilesThanTheUsualOnesAreNamedToCrio) {
  const EngineOptions options{.config = "/opt/crio.conf", .drop_in = "/opt/drop/99-nvidia.toml"};
  EXPECT_THAT(plan(options).show_config,
              ElementsAre("crio", "--config-dir", "/opt/drop", "config"));
  tree_.file("opt/crio.conf");
  EXPECT_THAT(plan(options).show_config, ElementsAre("crio", "--config", "/opt/crio.conf",
                                                     "--config-dir", "/opt/drop", "config"));
}

}  // namespace
}  // namespace gantry::engines
