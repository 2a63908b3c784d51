// SPDX-License-Identifier: Apache-2.0
#include "node/options/options.hpp"
#include "support/paths.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace gantry::options {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<Options> file(std::string_view text) {
  Options options;
  GANTRY_CHECK(apply_file(text, "c.yaml", options));
  return options;
}

std::string refused(std::string_view text) {
  const auto got = file(text);
  return got.ok() ? "accepted" : got.error().text();
}

TEST(OptionsFile, OfNvidiasManualIsRead) {
  const auto got = file(R"(version: v1
flags:
  migStrategy: "none"
  failOnInitError: true
  nvidiaDriverRoot: "/"
  plugin:
    passDeviceSpecs: true
    deviceListStrategy: "envvar"
    deviceIDStrategy: "uuid"
  gfd:
    oneshot: false
    noTimestamp: false
    outputFile: /etc/kubernetes/node-feature-discovery/features.d/gfd
    sleepInterval: 30s
sharing:
  timeSlicing:
    renameByDefault: true
    failRequestsGreaterThanOne: true
    resources:
    - name: nvidia.com/gpu
      replicas: 10
)");
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_TRUE(got->pass_device_specs);
  EXPECT_THAT(got->list_strategies, ElementsAre(ListStrategy::EnvVar));
  EXPECT_EQ(got->features.sleep_interval, std::chrono::seconds(30));
  EXPECT_EQ(got->sharing.kind, SharingKind::TimeSlicing);
  EXPECT_TRUE(got->sharing.only_one);
  ASSERT_EQ(got->sharing.resources.size(), 1U);
  EXPECT_EQ(got->sharing.resources[0].replicas, 10);
  EXPECT_EQ(got->sharing.resources[0].where, "c.yaml:20");
}

TEST(OptionsFile, MayBeJson) {
  const auto got = file(R"({"version": "v1", "flags": {"plugin": {"deviceListStrategy":
    ["volume-mounts", "cdi-cri"]}}, "imex": {"channelIDs": [0], "required": true}})");
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_THAT(got->list_strategies, ElementsAre(ListStrategy::VolumeMounts, ListStrategy::CdiCri));
  EXPECT_THAT(got->imex_channels, ElementsAre(0));
  EXPECT_TRUE(got->imex_required);
}

TEST(OptionsFile, UnknownKeysAreErrorsWithTheLineAndTheNearestOne) {
  EXPECT_THAT(refused("version: v1\nflags:\n  migStrategi: none\n"),
              AllOf(HasSubstr("c.yaml:3"), HasSubstr("did you mean `migStrategy`?")));
  EXPECT_THAT(refused("version: v1\nflag: {}\n"), HasSubstr("did you mean `flags`?"));
  EXPECT_THAT(refused("version: v1\nsharing:\n  timeSlice: {}\n"), HasSubstr("c.yaml:3"));
  EXPECT_THAT(refused("version: v1\nflags: {plugin: {migStrategy: none}}\n"),
              HasSubstr("in flags.plugin"));
  EXPECT_THAT(refused("version: v1\ngantry:\n  gpus:\n  - {device: [0], use: vm}\n"),
              HasSubstr("did you mean `devices`?"));
}

TEST(OptionsFile, WithoutItsVersionIsRefused) {
  EXPECT_THAT(refused("flags: {}\n"), HasSubstr("version: v1"));
  EXPECT_THAT(refused("version: v2\n"), HasSubstr("`v2` is not supported"));
  EXPECT_THAT(refused(""), HasSubstr("version: v1"));
}

TEST(OptionsFile, DevicesOfASharedResourceAreKept) {
  const auto got = file(R"(version: v1
sharing:
  timeSlicing:
    resources:
    - {name: gpu, rename: shared-gpu, devices: [0, "1:2", GPU-aa], replicas: 2}
    - {name: nvidia.com/mig-1g.5gb, devices: 3, replicas: 4}
    - {name: a100, devices: all, replicas: 5}
)");
  ASSERT_TRUE(got.ok()) << got.error().text();
  const auto& shared = got->sharing.resources;
  EXPECT_EQ(shared[0].name, "nvidia.com/gpu");
  EXPECT_EQ(shared[0].rename, "nvidia.com/shared-gpu");
  EXPECT_THAT(shared[0].devices.ids, ElementsAre("0", "1:2", "GPU-aa"));
  EXPECT_EQ(shared[1].devices.count, 3);
  EXPECT_TRUE(shared[2].devices.all);
}

TEST(OptionsFile, SharingIsReadStrictly) {
  const auto sharing = [](std::string_view entry) {
    return refused("version: v1\nsharing: {timeSlicing: {resources: [" + std::string(entry) +
                   "]}}");
  };
  EXPECT_EQ(sharing("{name: gpu, replicas: 2}"), "accepted");
  EXPECT_THAT(sharing("{name: gpu, replicas: 1}"), HasSubstr("2 to 1024"));
  EXPECT_THAT(sharing("{name: gpu}"), HasSubstr("replicas is missing"));
  EXPECT_THAT(sharing("{replicas: 2}"), HasSubstr("name is missing"));
  EXPECT_THAT(sharing("{name: GPU, replicas: 2}"), HasSubstr("lowercase letters"));
  EXPECT_THAT(sharing("{name: gpu, replicas: 2, devices: some}"), HasSubstr("`all`, a count"));
  EXPECT_THAT(sharing("{name: gpu, replicas: 2, devices: 0}"), HasSubstr("`all`, a count"));
  EXPECT_THAT(sharing("{name: gpu, replicas: 2, devices: [x]}"), HasSubstr("not a device"));
  EXPECT_THAT(sharing(""), HasSubstr("nothing would be shared"));
}

TEST(OptionsFile, MpsComesBeforeTimeSlicingAndTakesOneAtATime) {
  const auto got = file(R"(version: v1
sharing:
  mps: {resources: [{name: gpu, replicas: 3}]}
  timeSlicing: {resources: [{name: gpu, replicas: 2}]}
)");
  EXPECT_EQ(got->sharing.kind, SharingKind::Mps);
  EXPECT_TRUE(got->sharing.only_one);
  EXPECT_THAT(check(*got).error().text(), HasSubstr("--mps-root"));
}

TEST(OptionsFile, HasOurUsesOfSingleGpus) {
  const auto got = file(R"(version: v1
resources: {gpus: [{pattern: "*A100*", name: a100}], mig: [{pattern: "1g*", name: small}]}
gantry:
  logFormat: json
  gpus:
  - {devices: [0, 1], use: replicas, replicas: 4, name: gpu.shared}
  - {devices: [2], use: vm}
)");
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_EQ(got->log.format, LogFormat::Json);
  EXPECT_EQ(got->gpu_names[0].name, "nvidia.com/a100");
  EXPECT_EQ(got->mig_names[0].pattern, "1g*");
  ASSERT_EQ(got->gpus.size(), 2U);
  EXPECT_EQ(got->gpus[0].use, model::AllocationMode::Replicas);
  EXPECT_EQ(got->gpus[1].use, model::AllocationMode::Vm);
  EXPECT_THAT(refused("version: v1\ngantry: {gpus: [{use: all}]}"), HasSubstr("whole, replicas"));
  EXPECT_THAT(refused("version: v1\ngantry: {gpus: [{use: vm, replicas: 2}]}"),
              HasSubstr("needs use: replicas"));
}

TEST(OptionsFile, OfTheDocumentationIsRead) {
  std::stringstream page;
  page << std::ifstream(test::source_dir() + "/docs/agent-options.md").rdbuf();
  const auto text = page.str();
  const std::string_view start = "```yaml\n";
  const auto from = text.find(start) + start.size();
  const auto sample = text.substr(from, text.find("```", from) - from);
  const auto got = file(sample);
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_EQ(got->mig_strategy, MigStrategy::Mixed);
  EXPECT_EQ(got->gpus.size(), 2U);
}

TEST(ResourceName, IsBoundedAndADnsName) {
  EXPECT_EQ(*resource_name("gpu"), "nvidia.com/gpu");
  EXPECT_EQ(*resource_name("nvidia.com/mig-1g.5gb.me"), "nvidia.com/mig-1g.5gb.me");
  for (const auto* bad : {"", "nvidia.com/", "-gpu", "gpu.", "a/b", "Gpu", "a..b"})
    EXPECT_FALSE(resource_name(bad).ok()) << bad;
  EXPECT_TRUE(resource_name(std::string(52, 'a')).ok());
  EXPECT_FALSE(resource_name(std::string(53, 'a')).ok());
}

}  // namespace
}  // namespace gantry::options
