// SPDX-License-Identifier: Apache-2.0
#include "support/run_cli.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>

namespace gantry::cli {
namespace {

using test::run_cli;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kBefore = "{\n    \"bip\": \"10.0.0.1/8\"\n}\n";

TEST(RuntimeConfigure, WritesAndTakesBack) {
  test::Tree tree;
  tree.file("etc/docker/daemon.json", kBefore);
  const auto run = run_cli({"gantry", "runtime", "configure", "--runtime=docker",
                            "--set-as-default", "--root", tree.root()});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("/etc/docker/daemon.json: changed"));
  EXPECT_THAT(run.out, HasSubstr("To apply it: on that machine: sudo systemctl restart docker"));
  EXPECT_THAT(run.out, HasSubstr("--runtime=docker --undo"));
  EXPECT_THAT(*tree.host().read("/etc/docker/daemon.json"),
              HasSubstr("\"default-runtime\": \"nvidia\""));

  const auto again =
      run_cli({"gantry", "runtime", "configure", "--runtime=docker", "--root", tree.root()});
  EXPECT_THAT(again.out, HasSubstr("nothing to change"));

  const auto undo = run_cli(
      {"gantry", "runtime", "configure", "--runtime=docker", "--undo", "--root", tree.root()});
  EXPECT_EQ(undo.status, 0) << undo.err;
  EXPECT_EQ(*tree.host().read("/etc/docker/daemon.json"), kBefore);
  const auto nothing = run_cli(
      {"gantry", "runtime", "configure", "--runtime=docker", "--undo", "--root", tree.root()});
  EXPECT_EQ(nothing.status, 1);
  EXPECT_THAT(nothing.err, HasSubstr("nothing to undo"));
}

TEST(RuntimeConfigure, ADryRunShowsADiffAndWritesNothing) {
  test::Tree tree;
  tree.file("etc/docker/daemon.json", kBefore);
  const auto run = run_cli(
      {"gantry", "runtime", "configure", "--runtime=docker", "--dry-run", "--root", tree.root()});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("--- /etc/docker/daemon.json\n"));
  EXPECT_THAT(run.out, HasSubstr("+    \"runtimes\": {\n"));
  EXPECT_EQ(*tree.host().read("/etc/docker/daemon.json"), kBefore);
  EXPECT_FALSE(tree.host().exists("/var"));
}

TEST(RuntimeConfigure, WrongWordsAreSaid) {
  const test::Tree tree;
  const auto engine =
      run_cli({"gantry", "runtime", "configure", "--runtime=lxc", "--root", tree.root()});
  EXPECT_NE(engine.status, 0);
  EXPECT_THAT(engine.err, HasSubstr("there is no engine `lxc`"));
  EXPECT_EQ(run_cli({"gantry", "runtime", "configure"}).status, 2);
  const auto restart = run_cli(
      {"gantry", "runtime", "configure", "--runtime=docker", "--restart", "--root", tree.root()});
  EXPECT_EQ(restart.status, 1);
  EXPECT_THAT(restart.err, HasSubstr("docker does not run on this machine"));
}

// As NVIDIA's tool: the file on stdout, messages on stderr.
TEST(NvidiaCtkRuntime, HasItsFlagsAndPrintsTheFile) {
  test::Tree tree;
  const auto file = tree.path("/daemon.json");
  tree.file("daemon.json", kBefore);
  const auto dry = run_cli({"nvidia-ctk", "runtime", "configure", "--config", file,
                            "--nvidia-runtime-name=gpu", "--runtime-path=/opt/n",
                            "--nvidia-set-as-default=true", "--cdi.enabled", "--dry-run"});
  ASSERT_EQ(dry.status, 0) << dry.err;
  EXPECT_EQ(dry.out, R"({
    "bip": "10.0.0.1/8",
    "runtimes": {
        "gpu": {
            "args": [],
            "path": "/opt/n"
        }
    },
    "default-runtime": "gpu",
    "features": {
        "cdi": true
    }
}
)");
  for (const auto* flag :
       {"--runtime=crio", "--config-source=file", "--executable-path=/x", "--config-mode=oci-hook",
        "--oci-hook-path=/x/hook.json", "--nvidia-runtime-hook-path=/x/hook"}) {
    EXPECT_THAT(run_cli({"nvidia-ctk", "runtime", "configure", "--dry-run", "--runtime=crio",
                         "--config-mode=oci-hook", flag})
                    .err,
                Not(HasSubstr("unexpected argument")))
        << flag;
  }
}

}  // namespace
}  // namespace gantry::cli
