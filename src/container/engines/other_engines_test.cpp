// SPDX-License-Identifier: Apache-2.0
#include "container/engines/change_plan.hpp"
#include "container/engines/diff.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::engines {
namespace {

using testing::Contains;
using testing::HasSubstr;

TEST(MakePlan, NamesTheProgramsOfATarThatIsUnpackedBelowUsrLocal) {
  test::Tree tree;
  tree.file("usr/local/bin/nvidia-container-runtime", "");
  tree.file("usr/local/bin/nvidia-container-runtime-hook", "");
  for (const auto engine : {Engine::Containerd, Engine::Crio, Engine::Podman}) {
    const auto plan = make_plan(tree.host(), {.engine = engine});
    ASSERT_TRUE(plan.ok()) << plan.error().text();
    EXPECT_THAT(plan->files[0].after, HasSubstr("\"/usr/local/bin/nvidia-container-runtime\""));
  }
  const EngineOptions hook{.engine = Engine::Podman, .mode = IntegrationMode::Hook};
  EXPECT_THAT(make_plan(tree.host(), hook)->files[0].after,
              HasSubstr("\"/usr/local/bin/nvidia-container-runtime-hook\""));
  // A package's programs come first.
  tree.file("usr/bin/nvidia-container-runtime", "");
  EXPECT_THAT(make_plan(tree.host(), {.engine = Engine::Podman})->files[0].after,
              HasSubstr("\"/usr/bin/nvidia-container-runtime\""));
}

TEST(HooksDirectory, GetsTheClassicHook) {
  const test::Tree tree;
  for (const auto engine : {Engine::Crio, Engine::Podman}) {
    const auto plan = make_plan(tree.host(), {.engine = engine, .mode = IntegrationMode::Hook});
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(plan->files[0].path, "/usr/share/containers/oci/hooks.d/oci-nvidia-hook.json");
    for (const auto* part :
         {"\"version\": \"1.0.0\"", "\"path\": \"/usr/bin/nvidia-container-runtime-hook\"",
          "\"args\": [\"nvidia-container-runtime-hook\", \"prestart\"]", "\"always\": true",
          "\"stages\": [\"prestart\"]"}) {
      EXPECT_THAT(plan->files[0].after, HasSubstr(part));
    }
  }
  for (const auto engine : {Engine::Docker, Engine::Containerd}) {
    EXPECT_EQ(
        make_plan(tree.host(), {.engine = engine, .mode = IntegrationMode::Hook}).error().code(),
        Errc::Unsupported);
  }
}

TEST(PodmanPlan, ANamedRuntimeIsADropInAndCdiNeedsNothing) {
  const test::Tree tree;
  const auto plan = make_plan(tree.host(), {.engine = Engine::Podman, .set_as_default = true});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->files[0].path, "/etc/containers/containers.conf.d/99-nvidia.conf");
  EXPECT_EQ(plan->files[0].after,
            "[engine.runtimes]\nnvidia = [\"/usr/bin/nvidia-container-runtime\"]\n\n"
            "[engine]\nruntime = \"nvidia\"\n");
  EXPECT_THAT(plan->notes, Contains(HasSubstr("--device nvidia.com/gpu=all")));
  EXPECT_TRUE(plan->restart.empty());
}

TEST(PodmanPlan, TheMainFileKeepsItsComments) {
  test::Tree tree;
  tree.file(
      "etc/containers/containers.conf",
      "[engine]\n# runtime = \"crun\"\n[engine.runtimes]\n# mine\ncrun = [\"/usr/bin/crun\"]\n");
  const auto plan = make_plan(tree.host(), {.engine = Engine::Podman, .drop_in = ""});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(
      plan->files[0].after,
      "[engine]\n# runtime = \"crun\"\n[engine.runtimes]\n# mine\ncrun = [\"/usr/bin/crun\"]\n"
      "nvidia = [\"/usr/bin/nvidia-container-runtime\"]\n");
}

TEST(Engines, HaveTheNamesOfTheCommandLine) {
  for (const auto* name : {"docker", "containerd", "crio", "podman"}) {
    EXPECT_EQ(to_string(*parse_engine(name)), name);
  }
  EXPECT_EQ(*parse_engine("cri-o"), Engine::Crio);
  EXPECT_THAT(parse_engine("lxc").error().text(), HasSubstr("known: docker, containerd, crio"));
}

TEST(Diff, ShowsWhatChangesWithThreeLinesAround) {
  EXPECT_EQ(unified_diff("f", "1\n2\n3\n4\n5\n6\n", "1\n2\n3\n4\nx\n5\n6\n"),
            "--- f\n+++ f\n@@ -2,5 +2,6 @@\n 2\n 3\n 4\n+x\n 5\n 6\n");
  EXPECT_EQ(unified_diff("f", "", "a\n"), "--- /dev/null\n+++ f\n@@ -0,0 +1,1 @@\n+a\n");
  EXPECT_EQ(unified_diff("f", "a", "b"),
            "--- f\n+++ f\n@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at "
            "end of file\n");
  EXPECT_EQ(unified_diff("f", "a\n", "a\n"), "");
}

}  // namespace
}  // namespace gantry::engines
