// SPDX-License-Identifier: Apache-2.0
#include "container/engines/change_plan.hpp"
#include "container/engines/check.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::engines {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

RunProgram version(const char* number) {
  return [number](const std::vector<std::string>& words) -> Result<std::string> {
    if (words.back() != "--version") return Error(Errc::NotFound, "not here");
    return "containerd github.com/containerd/containerd " + std::string(number) + " abc\n";
  };
}

constexpr const char* kMain = "etc/containerd/config.toml";

struct ContainerdCase {
  const char* name;
  EngineOptions options;
  const char* version;  // of the program; "": cannot be asked
  const char* before;   // nullptr: no file
  std::string after;
};

class ContainerdMain : public testing::TestWithParam<ContainerdCase> {};

TEST_P(ContainerdMain, GetsTheRuntimeAndNothingElseChanges) {
  const auto& c = GetParam();
  test::Tree tree;
  if (c.before != nullptr) tree.file(kMain, c.before);
  auto options = c.options;
  options.engine = Engine::Containerd;
  if (*c.version != '\0') options.run = version(c.version);
  const auto plan = make_plan(tree.host(), options);
  ASSERT_TRUE(plan.ok()) << plan.error().text();
  ASSERT_EQ(plan->files.size(), 1U);
  EXPECT_EQ(plan->files[0].path, "/etc/containerd/config.toml");
  EXPECT_EQ(plan->files[0].after, c.after);
}

const ContainerdCase main_files[] = {
    {"NoFileOld",
     {},
     "1.6.20~ds1",
     nullptr,
     R"(version = 2

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
BinaryName = "/usr/bin/nvidia-container-runtime"
)"},
    {"NobodyToAskMeansNoDropIn",
     {},
     "",
     "version = 3\n# mine\n",
     R"(version = 3
# mine

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.nvidia.options]
BinaryName = "/usr/bin/nvidia-container-runtime"
)"},
    {"TheDefaultRuntimesOptionsAreTakenOver",
     {.runtime_path = "/opt/ncr", .set_as_default = true, .enable_cdi = true},
     "v1.7.24",
     R"(# Ours, by hand.
version = 2
[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    sandbox_image = "registry.example/pause:3.9" # mirror
    [plugins."io.containerd.grpc.v1.cri".containerd]
      snapshotter = "overlayfs"
      default_runtime_name = "runc"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
        runtime_type = "io.containerd.runc.v2"
        pod_annotations = ["a.*"]
        [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
          SystemdCgroup = true
          BinaryName = "/usr/sbin/runc"

# The rest.
[debug]
  level = "info"
)",
     R"(# Ours, by hand.
version = 2
[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    sandbox_image = "registry.example/pause:3.9" # mirror
    enable_cdi = true
    [plugins."io.containerd.grpc.v1.cri".containerd]
      snapshotter = "overlayfs"
      default_runtime_name = "nvidia"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
        runtime_type = "io.containerd.runc.v2"
        pod_annotations = ["a.*"]
        [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
          SystemdCgroup = true
          BinaryName = "/usr/sbin/runc"

      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
        runtime_type = "io.containerd.runc.v2"
        pod_annotations = ["a.*"]

        [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
          SystemdCgroup = true
          BinaryName = "/opt/ncr"

# The rest.
[debug]
  level = "info"
)"},
    {"VersionOne",
     {.set_as_default = true},
     "1.6.20",
     "[plugins.cri.containerd]\n  snapshotter = \"zfs\"\n",
     R"([plugins.cri.containerd]
  snapshotter = "zfs"
  default_runtime_name = "nvidia"

[plugins.cri.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins.cri.containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"

[plugins.cri.containerd.runtimes.nvidia.options]
BinaryName = "/usr/bin/nvidia-container-runtime"
Runtime = "/usr/bin/nvidia-container-runtime"
)"},
    {"VersionOnesOldDefaultTable",
     {.set_as_default = true},
     "",
     "[plugins.cri.containerd.default_runtime]\nruntime_type = "
     "\"io.containerd.runtime.v1.linux\"\n",
     R"([plugins.cri.containerd.default_runtime]
runtime_type = "io.containerd.runtime.v1.linux"
runtime_engine = "/usr/bin/nvidia-container-runtime"

[plugins.cri.containerd.default_runtime.options]
BinaryName = "/usr/bin/nvidia-container-runtime"
Runtime = "/usr/bin/nvidia-container-runtime"

[plugins.cri.containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"

[plugins.cri.containerd.runtimes.nvidia.options]
BinaryName = "/usr/bin/nvidia-container-runtime"
Runtime = "/usr/bin/nvidia-container-runtime"

[plugins.cri.containerd]
default_runtime_name = "nvidia"
)"},
    {"ADropInThatIsNotWanted",
     {.drop_in = ""},
     "v2.1.4",
     "version = 3\n",
     R"(version = 3

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.nvidia.options]
BinaryName = "/usr/bin/nvidia-container-runtime"
)"},
    {"InlineTables",
     {},
     "1.7.0",
     "version = 2\nplugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes = { runc = { "
     "runtime_type = \"io.containerd.runc.v2\" } }\n",
     "version = 2\nplugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes = { runc = { "
     "runtime_type = \"io.containerd.runc.v2\" }, nvidia.runtime_type = \"io.containerd.runc.v2\", "
     "nvidia.options.BinaryName = "
     "\"/usr/bin/nvidia-container-runtime\" }\n"},
};

INSTANTIATE_TEST_SUITE_P(Engines, ContainerdMain, testing::ValuesIn(main_files),
                         [](const auto& c) { return c.param.name; });

EngineOptions containerd(const char* number) {
  return {.engine = Engine::Containerd, .run = version(number)};
}

TEST(ContainerdPlan, ASecondRunChangesNothing) {
  for (const auto& c : main_files) {
    test::Tree tree;
    tree.file(kMain, c.after);
    auto options = c.options;
    options.engine = Engine::Containerd;
    if (*c.version != '\0') options.run = version(c.version);
    const auto plan = make_plan(tree.host(), options);
    ASSERT_TRUE(plan.ok()) << c.name << plan.error().text();
    EXPECT_FALSE(plan->changes()) << c.name << plan->files[0].after;
  }
}

TEST(ContainerdPlan, WhereTablesAreMergedADropInHoldsOurKeysAlone) {
  test::Tree tree;
  tree.file(kMain,
            "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc."
            "options]\nSystemdCgroup = true\n");
  const auto plan = make_plan(tree.host(), containerd("v2.0.5"));
  ASSERT_TRUE(plan.ok()) << plan.error().text();
  ASSERT_EQ(plan->files.size(), 2U);
  EXPECT_EQ(plan->files[0].path, "/etc/containerd/conf.d/99-nvidia.toml");
  EXPECT_EQ(plan->files[0].after, R"(version = 3

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.nvidia.options]
SystemdCgroup = true
BinaryName = "/usr/bin/nvidia-container-runtime"
)");
  EXPECT_THAT(plan->files[1].after,
              HasSubstr("version = 3\nimports = [\"/etc/containerd/conf.d/*.toml\"]\n"));
}

TEST(ContainerdPlan, AnnotationsThatAreThereStay) {
  test::Tree tree;
  tree.file(kMain,
            "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.nvidia]\n"
            "runtime_type = \"io.containerd.runc.v2\"\ncontainer_annotations = [\"mine/*\"]\n");
  auto options = containerd("1.7.0");
  const auto plain = make_plan(tree.host(), options);
  ASSERT_TRUE(plain.ok()) << plain.error().text();
  EXPECT_THAT(plain->files[0].after, Not(HasSubstr("cdi.k8s.io")));
  options.pass_cdi_annotations = true;
  const auto plan = make_plan(tree.host(), options);
  ASSERT_TRUE(plan.ok()) << plan.error().text();
  EXPECT_THAT(plan->files[0].after,
              HasSubstr("container_annotations = [\"mine/*\", \"cdi.k8s.io/*\"]"));
}

// A walk-through's snippet, saved as the whole file: containerd ignores its tables.
TEST(ContainerdPlan, TablesOfVersionTwoGetTheirVersion) {
  test::Tree tree;
  tree.file(kMain,
            "[plugins.\"io.containerd.grpc.v1.cri\".containerd]\n"
            "  default_runtime_name = \"nvidia\"\n"
            "[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.nvidia]\n"
            "  runtime_type = \"io.containerd.runc.v2\"\n"
            "[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.nvidia.options]\n"
            "  BinaryName = \"/usr/bin/nvidia-container-runtime\"\n");
  const auto plan = make_plan(tree.host(), containerd("1.7.0"));
  ASSERT_TRUE(plan.ok()) << plan.error().text();
  EXPECT_THAT(plan->files[0].after, testing::StartsWith("version = 2\n"));
  EXPECT_THAT(plan->files[0].after, Not(HasSubstr("[plugins.cri")));
  EXPECT_THAT(plan->notes, Contains(HasSubstr("containerd ignored its version 2 tables")));
  EXPECT_TRUE(make_plan(tree.host(), containerd("v2.1.0")).ok()) << "it has no version 1 tables";
}

TEST(ContainerdPlan, IgnoredTablesBesideThoseOfVersionOneAreNamed) {
  test::Tree tree;
  tree.file(kMain,
            "[plugins.cri]\n  sandbox_image = \"x\"\n"
            "[plugins.\"io.containerd.grpc.v1.cri\"]\n  sandbox_image = \"y\"\n");
  const auto plan = make_plan(tree.host(), containerd("1.7.0"));
  ASSERT_TRUE(plan.ok()) << plan.error().text();
  EXPECT_THAT(plan->notes, Contains(HasSubstr("ignores [plugins.\"io.containerd.grpc.v1.cri\"]")));
}

constexpr const char* kOldRuntime =
    "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.nvidia]\n"
    "runtime_type = \"io.containerd.runc.v2\"\n"
    "[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.nvidia.options]\n"
    "BinaryName = \"/opt/old/ncr\"\n";

TEST(ContainerdPlan, AProgramThatDoesNotExistIsReplaced) {
  test::Tree tree;
  tree.file(kMain, kOldRuntime);
  auto options = containerd("1.7.0");
  for (const auto* drop_in : {"", "/etc/containerd/conf.d/99-nvidia.toml"}) {
    options.drop_in = drop_in;
    const auto plan = make_plan(tree.host(), options);
    ASSERT_TRUE(plan.ok()) << plan.error().text();
    EXPECT_EQ(plan->expectation.runtime_path, "/usr/bin/nvidia-container-runtime");
    EXPECT_THAT(plan->files[0].after, Not(HasSubstr("/opt/old")));
    EXPECT_THAT(plan->notes, Contains(HasSubstr("/opt/old/ncr, which does not exist")));
  }
  tree.file("opt/old/ncr", "");
  const auto kept = make_plan(tree.host(), options);
  EXPECT_EQ(kept->expectation.runtime_path, "/opt/old/ncr") << "the administrator's";
}

TEST(ContainerdCheck, DoesNotBlameTheChangeForADefaultThatWasMissing) {
  test::Tree tree;
  tree.file(kMain,
            "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.kata]\n"
            "runtime_type = \"io.containerd.kata.v2\"\n");
  const auto plan = make_plan(tree.host(), containerd("1.7.0"));
  ASSERT_TRUE(plan.ok()) << plan.error().text();
  const auto dump = [&](const std::vector<std::string>&) -> Result<std::string> {
    return plan->files[0].after +
           "[plugins.\"io.containerd.grpc.v1.cri\".containerd]\n"
           "default_runtime_name = \"runc\"\n";
  };
  const auto result = check(*plan, dump);
  EXPECT_EQ(result.verdict, ConfigCheck::Verdict::Passed) << result.text;
  EXPECT_THAT(result.text, HasSubstr("runc was missing before"));
}

TEST(ContainerdCheck, AProgramThatPrintsNothingSaysNothing) {
  const test::Tree tree;
  const auto plan = make_plan(tree.host(), containerd("1.7.0"));
  const auto silent = [](const std::vector<std::string>&) { return Result<std::string>(""); };
  EXPECT_EQ(check(*plan, silent).verdict, ConfigCheck::Verdict::NotAsked);
}

TEST(ContainerdPlan, NvidiasOrderOfKeysIfItIsAskedFor) {
  test::Tree tree;
  tree.file(kMain, "version = 2\nimports = [\"/foo/*.toml\"]\n");
  auto options = containerd("1.7.0");
  options.drop_in = "/etc/containerd/conf.d/99-nvidia.toml";
  options.sort_keys = true;
  const auto plan = make_plan(tree.host(), options);
  EXPECT_EQ(plan->files[1].after,
            "imports = [\"/foo/*.toml\", \"/etc/containerd/conf.d/*.toml\"]\nversion = 2\n");
  tree.file(kMain, "version = 2\n# mine\nimports = [\"/foo/*.toml\"]\n");
  EXPECT_THAT(make_plan(tree.host(), options)->files[1].after,
              testing::StartsWith("version = 2\n# mine\n"));
}

TEST(ContainerdPlan, AnImportThatCoversTheDropInIsEnough) {
  test::Tree tree;
  tree.file(kMain, "version = 3\nimports = ['/etc/containerd/conf.d/*']\n");
  const auto plan = make_plan(tree.host(), containerd("v2.2.0"));
  ASSERT_TRUE(plan.ok());
  EXPECT_FALSE(plan->files[1].changes());
}

TEST(ContainerdPlan, AnOldFileInANewContainerdStaysInItsVersion) {
  test::Tree tree;
  tree.file(kMain, "version = 2\n");
  const auto merged = make_plan(tree.host(), containerd("v2.1.0"));
  ASSERT_TRUE(merged.ok());
  EXPECT_THAT(merged->files[0].after, HasSubstr("version = 2\n\n[plugins.\"io.containerd.grpc"));
  const auto not_merged = make_plan(tree.host(), containerd("1.7.24"));
  ASSERT_TRUE(not_merged.ok());
  EXPECT_EQ(not_merged->files.size(), 1U);
}

TEST(ContainerdPlan, WhereAnImportReplacesTheTableTheChangeIsMadeThere) {
  test::Tree tree;
  tree.file(kMain, "version = 2\nimports = [\"conf.d/*.toml\"]\n");
  tree.file("etc/containerd/conf.d/50-cri.toml",
            "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\nsandbox_image = \"x\"\n");
  tree.file("etc/containerd/conf.d/60-other.toml", "version = 2\n[debug]\nlevel = \"info\"\n");
  const auto plan = make_plan(tree.host(), containerd("1.7.2"));
  ASSERT_TRUE(plan.ok()) << plan.error().text();
  ASSERT_EQ(plan->files.size(), 1U);
  EXPECT_EQ(plan->files[0].path, "/etc/containerd/conf.d/50-cri.toml");
  EXPECT_THAT(plan->notes, Contains(HasSubstr("replaces the CRI table")));
}

TEST(ContainerdPlan, ADropInThatWasAskedForCarriesTheTableWhereItMust) {
  test::Tree tree;
  tree.file(kMain, "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\nsandbox_image = \"x\"\n");
  auto options = containerd("1.7.2");
  options.drop_in = "/etc/containerd/conf.d/99-nvidia.toml";
  const auto plan = make_plan(tree.host(), options);
  ASSERT_TRUE(plan.ok()) << plan.error().text();
  ASSERT_EQ(plan->files.size(), 2U);
  EXPECT_THAT(plan->files[0].after, HasSubstr("sandbox_image = \"x\""));
  EXPECT_THAT(plan->files[0].after, HasSubstr("runtimes.runc]"));
  EXPECT_THAT(plan->notes, Contains(HasSubstr("have no effect")));
}

TEST(ContainerdPlan, VersionOneInContainerdTwoIsRefusedWithTheCommand) {
  test::Tree tree;
  tree.file(kMain, "[plugins.cri]\nsandbox_image = \"x\"\n");
  const auto plan = make_plan(tree.host(), containerd("v2.1.4"));
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().code(), Errc::Unsupported);
  EXPECT_THAT(plan.error().text(), HasSubstr("containerd config default"));
}

TEST(ContainerdPlan, AnUnknownVersionIsRefused) {
  test::Tree tree;
  tree.file(kMain, "version = 9\n");
  EXPECT_EQ(make_plan(tree.host(), containerd("v2.1.4")).error().code(), Errc::Unsupported);
}

TEST(ContainerdPlan, ASwitchedOffCriIsSaid) {
  test::Tree tree;
  tree.file(kMain, "disabled_plugins = [\"cri\"]\n");
  const auto plan = make_plan(tree.host(), containerd("1.7.2"));
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(plan->notes, Contains(HasSubstr("disables CRI")));
}

TEST(Distributions, K3sFindsTheRuntimeItself) {
  test::Tree tree;
  tree.directory("var/lib/rancher/k3s/agent/etc/containerd");
  tree.file("usr/bin/nvidia-container-runtime");
  tree.file("etc/systemd/system/k3s-agent.service");
  const auto plan = make_plan(tree.host(), {.engine = Engine::Containerd, .set_as_default = true});
  ASSERT_TRUE(plan.ok()) << plan.error().text();
  ASSERT_EQ(plan->files.size(), 1U);
  EXPECT_EQ(plan->files[0].path, "/etc/rancher/k3s/config.yaml.d/99-nvidia.yaml");
  EXPECT_EQ(plan->files[0].after, "default-runtime: nvidia\n");
  EXPECT_THAT(plan->notes, Contains(HasSubstr("adds the runtime itself")));
  EXPECT_THAT(plan->restart, ElementsAre("systemctl", "restart", "k3s-agent"));
}

TEST(Distributions, K3sGetsADropInOrATemplateForAProgramElsewhere) {
  test::Tree tree;
  const std::string directory = "var/lib/rancher/k3s/agent/etc/containerd/";
  tree.file(directory + "config.toml", "version = 3\n");
  const EngineOptions options{.engine = Engine::Containerd, .runtime_path = "/opt/ncr"};
  const auto modern = make_plan(tree.host(), options);
  ASSERT_TRUE(modern.ok()) << modern.error().text();
  ASSERT_EQ(modern->files.size(), 1U);
  EXPECT_EQ(modern->files[0].path, "/" + directory + "config-v3.toml.d/99-nvidia.toml");
  EXPECT_THAT(modern->files[0].after, HasSubstr("BinaryName = \"/opt/ncr\""));

  tree.file(directory + "config.toml", "version = 2\n");
  const auto old = make_plan(tree.host(), options);
  ASSERT_TRUE(old.ok());
  EXPECT_EQ(old->files[0].path, "/" + directory + "config.toml.tmpl");
  EXPECT_THAT(old->files[0].after, HasSubstr("{{ template \"base\" . }}\n\n[plugins."));

  tree.file(directory + "config.toml.tmpl", old->files[0].after);
  EXPECT_FALSE(make_plan(tree.host(), options)->changes());
}

TEST(Distributions, Rke2Microk8sAndK0sHaveTheirOwnPlaces) {
  test::Tree rke2;
  rke2.directory("var/lib/rancher/rke2/agent/etc/containerd");
  rke2.file("usr/local/nvidia/toolkit/nvidia-container-runtime");
  const auto first = make_plan(rke2.host(), {.engine = Engine::Containerd});
  ASSERT_TRUE(first.ok());
  EXPECT_THAT(first->files, IsEmpty());
  EXPECT_EQ(first->expectation.runtime_path, "/usr/local/nvidia/toolkit/nvidia-container-runtime");

  test::Tree snap;
  snap.file("var/snap/microk8s/current/args/containerd-template.toml",
            "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd]\n"
            "  snapshotter = \"${SNAPSHOTTER}\"\n  default_runtime_name = \"${RUNTIME}\"\n");
  const auto second = make_plan(snap.host(), {.engine = Engine::Containerd});
  ASSERT_TRUE(second.ok()) << second.error().text();
  EXPECT_THAT(second->files[0].after, HasSubstr("default_runtime_name = \"${RUNTIME}\""));
  EXPECT_THAT(second->files[0].after, HasSubstr("runtimes.nvidia.options]"));
  EXPECT_THAT(second->restart, ElementsAre("snap", "restart", "microk8s.daemon-containerd"));

  const test::Tree nothing;
  const auto absent = make_plan(
      nothing.host(), {.engine = Engine::Containerd, .distribution = Distribution::Microk8s});
  ASSERT_FALSE(absent.ok());
  EXPECT_THAT(absent.error().text(), HasSubstr("containerd-template.toml does not exist"));

  test::Tree k0s;
  k0s.file("etc/k0s/containerd.toml", "# k0s_managed=true\nversion = 2\n");
  const auto third = make_plan(k0s.host(), {.engine = Engine::Containerd});
  ASSERT_TRUE(third.ok());
  EXPECT_EQ(third->files[0].path, "/etc/k0s/containerd.d/99-nvidia.toml");
  EXPECT_THAT(third->files[0].after, Not(HasSubstr("runtimes.runc")));
}

TEST(Distributions, SeveralContainerdsMustBeChosenFrom) {
  test::Tree tree;
  tree.directory("var/lib/rancher/k3s/agent/etc/containerd");
  tree.file(kMain, "version = 2\n");
  const auto both = make_plan(tree.host(), {.engine = Engine::Containerd});
  ASSERT_FALSE(both.ok());
  EXPECT_THAT(both.error().text(), HasSubstr("k3s and plain; choose one with --distribution="));
  EXPECT_TRUE(
      make_plan(tree.host(), {.engine = Engine::Containerd, .distribution = Distribution::Plain})
          .ok());
  const auto named = make_plan(
      tree.host(), {.engine = Engine::Containerd, .config = "/etc/containerd/config.toml"});
  EXPECT_TRUE(named.ok());
}

}  // namespace
}  // namespace gantry::engines
