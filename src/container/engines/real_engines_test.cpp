// SPDX-License-Identifier: Apache-2.0
// What we write, read by the real containerd and dockerd. Nothing is started: both only look.
#include "base/sys/child.hpp"
#include "container/engines/check.hpp"
#include "container/engines/journal.hpp"
#include "support/tree.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::engines {
namespace {

using testing::HasSubstr;

// Runs the program on the tree: paths behind --config and --config-file are the tree's.
RunProgram on(const test::Tree& tree) {
  return [&tree](std::vector<std::string> words) -> Result<std::string> {
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (words[i - 1].starts_with("--config")) words[i] = tree.path(words[i]);
    }
    GANTRY_TRY(auto result, sys::run_command(words, std::chrono::seconds(20)));
    if (result.status == 127) return Error(Errc::NotFound, words[0] + " is not there");
    if (result.status != 0) return Error(Errc::Invalid, result.output);
    return result.output;
  };
}

bool installed(const char* program) {
  const auto answer = sys::run_command({program, "--version"}, std::chrono::seconds(10));
  return answer.ok() && answer->status == 0;
}

class RealContainerd : public testing::TestWithParam<const char*> {};

TEST_P(RealContainerd, ReadsWhatWasWrittenAndKeepsTheRest) {
  if (!installed("containerd")) GTEST_SKIP() << "containerd is not installed";
  test::Tree tree;
  if (*GetParam() != '\0') tree.file("etc/containerd/config.toml", GetParam());
  EngineOptions options{.engine = Engine::Containerd,
                        .runtime_path = "/opt/ncr",
                        .set_as_default = true,
                        .run = on(tree)};
  const auto plan = make_plan(tree.host(), options);
  ASSERT_TRUE(plan.ok()) << plan.error().text();
  ASSERT_TRUE(apply(tree.host(), *plan, *disk_file_writer()).ok());
  const auto checked = check(*plan, on(tree));
  EXPECT_EQ(checked.verdict, ConfigCheck::Verdict::Passed) << checked.text;
  const auto dump =
      *on(tree)({"containerd", "--config", "/etc/containerd/config.toml", "config", "dump"});
  EXPECT_THAT(dump, HasSubstr("runtimes.runc]"));
  if (std::string_view(GetParam()).find("sandbox_image") != std::string_view::npos) {
    EXPECT_THAT(dump, HasSubstr("registry.example/pause"));
    EXPECT_THAT(dump, HasSubstr("SystemdCgroup = true"));
  }
}

INSTANTIATE_TEST_SUITE_P(
    FileWriter, RealContainerd,
    testing::Values("", "version = 2\n",
                    "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\n"
                    "  sandbox_image = \"registry.example/pause\"\n"
                    "  [plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.runc]\n"
                    "    runtime_type = \"io.containerd.runc.v2\"\n"
                    "    [plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.runc.options]\n"
                    "      SystemdCgroup = true\n"));

TEST(RealContainerdDefaults, TheWholeDefaultFileGetsOneTableMore) {
  if (!installed("containerd")) GTEST_SKIP() << "containerd is not installed";
  const auto whole =
      sys::run_command({"containerd", "config", "default"}, std::chrono::seconds(10));
  ASSERT_TRUE(whole.ok());
  test::Tree tree;
  tree.file("etc/containerd/config.toml", whole->output);
  EngineOptions options{.engine = Engine::Containerd, .drop_in = "", .run = on(tree)};
  const auto plan = make_plan(tree.host(), options);
  ASSERT_TRUE(plan.ok()) << plan.error().text();
  ASSERT_TRUE(apply(tree.host(), *plan, *disk_file_writer()).ok());
  EXPECT_EQ(check(*plan, on(tree)).verdict, ConfigCheck::Verdict::Passed);
  ASSERT_TRUE(undo(tree.host(), Engine::Containerd, *disk_file_writer()).ok());
  EXPECT_EQ(*tree.host().read("/etc/containerd/config.toml"), whole->output);
}

TEST(RealDocker, AcceptsWhatWasWritten) {
  if (!installed("dockerd")) GTEST_SKIP() << "dockerd is not installed";
  test::Tree tree;
  tree.file("etc/docker/daemon.json", "{\"log-driver\": \"json-file\"}");
  const auto plan = make_plan(tree.host(), {.set_as_default = true});
  ASSERT_TRUE(plan.ok());
  ASSERT_TRUE(apply(tree.host(), *plan, *disk_file_writer()).ok());
  const auto checked = check(*plan, on(tree));
  if (checked.verdict == ConfigCheck::Verdict::NotAsked) GTEST_SKIP() << checked.text;
  EXPECT_EQ(checked.verdict, ConfigCheck::Verdict::Passed) << checked.text;
}

TEST(EngineCheck, SaysWhatTheEngineSaid) {
  const ChangePlan plan{.engine = Engine::Containerd,
                        .expectation = {"nvidia", "/opt/ncr", false},
                        .config = "/etc/containerd/config.toml",
                        .program = "containerd"};
  const auto answering = [](const std::string& text) {
    return [text](const auto&) { return Result<std::string>(text); };
  };
  EXPECT_EQ(check(plan, {}).verdict, ConfigCheck::Verdict::NotAsked);
  EXPECT_EQ(check(plan, answering("version = 2\n")).verdict, ConfigCheck::Verdict::Failed);
  const std::string table = "[plugins.\"io.containerd.grpc.v1.cri\".containerd";
  const auto wrong =
      check(plan, answering(table + ".runtimes.nvidia.options]\nBinaryName = \"/x\"\n"));
  EXPECT_EQ(wrong.verdict, ConfigCheck::Verdict::Failed);
  EXPECT_THAT(wrong.text, HasSubstr("containerd sees nvidia as /x"));
  const auto gone =
      check(plan, answering(table + "]\ndefault_runtime_name = \"runc\"\n" + table +
                            ".runtimes.nvidia.options]\nBinaryName = \"/opt/ncr\"\n"));
  EXPECT_THAT(gone.text, HasSubstr("no longer has its default runtime runc"));
}

ConfigCheck answered(Engine engine, const Result<std::string>& answer) {
  const ChangePlan plan{.engine = engine,
                        .expectation = {"nvidia", "/opt/ncr", false},
                        .config = "/etc/engine/config",
                        .program = "engine"};
  return check(plan, [&](const auto&) { return answer; });
}

TEST(EngineCheck, ADockerThatIsTooOldIsNotAsked) {
  const auto old = answered(Engine::Docker, Error(Errc::Invalid, "unknown flag: --validate"));
  EXPECT_EQ(old.verdict, ConfigCheck::Verdict::NotAsked);
  EXPECT_EQ(old.text, "this dockerd cannot check a configuration (23 and later can)");
  const auto refused = answered(Engine::Docker, Error(Errc::Invalid, "invalid character '}'"));
  EXPECT_EQ(refused.verdict, ConfigCheck::Verdict::Failed);
  EXPECT_EQ(refused.text, "invalid character '}'");
}

TEST(EngineCheck, AProgramThatIsNotInstalledIsNotAsked) {
  for (const auto engine : {Engine::Docker, Engine::Containerd, Engine::Crio}) {
    const auto result = answered(engine, Error(Errc::NotFound, "no such program"));
    EXPECT_EQ(result.verdict, ConfigCheck::Verdict::NotAsked) << to_string(engine);
    EXPECT_EQ(result.text, "engine is not installed here");
  }
}

TEST(EngineCheck, AContainerdThatPrintsNonsenseIsNotAVerdict) {
  for (const auto* text : {"<html>502 Bad Gateway</html>\n", "[plugins\n", "\x7f\x45LF"}) {
    const auto result = answered(Engine::Containerd, std::string(text));
    EXPECT_EQ(result.verdict, ConfigCheck::Verdict::NotAsked) << text;
    EXPECT_EQ(result.text, "containerd config dump did not print TOML");
  }
}

}  // namespace
}  // namespace gantry::engines
