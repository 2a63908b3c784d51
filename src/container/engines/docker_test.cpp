// SPDX-License-Identifier: Apache-2.0
#include "container/engines/change_plan.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::engines {
namespace {

using testing::HasSubstr;

constexpr const char* kConfig = "etc/docker/daemon.json";

// As in a walk-through that many have followed, with its spaces.
constexpr const char* kSeed = R"({
    "default-runtime": "nvidia",
    "runtimes": {
        "nvidia": {
            "path": "/usr/bin/nvidia-container-runtime",
            "runtimeArgs": []
        }
    },
    "exec-opts": ["native.cgroupdriver=systemd"],
    "log-driver": "json-file",
    "log-opts": {
                 "max-size": "100m"
    },
    "registry-mirrors": ["https://mirror.example", "http://f1361db2.m.daocloud.io"],
    "insecure-registries" : ["registry.example:5000"]
}   
)";

struct DockerCase {
  const char* name;
  EngineOptions options;
  const char* before;  // nullptr: no file
  std::string after;
};

class Docker : public testing::TestWithParam<DockerCase> {};

TEST_P(Docker, GetsTheRuntimeAndNothingElseChanges) {
  const auto& c = GetParam();
  test::Tree tree;
  if (c.before != nullptr) tree.file(kConfig, c.before);
  const auto plan = make_plan(tree.host(), c.options);
  ASSERT_TRUE(plan.ok()) << plan.error().text();
  ASSERT_EQ(plan->files.size(), 1U);
  EXPECT_EQ(plan->files[0].after, c.after);
}

const DockerCase docker_cases[] = {
    {"NoFile", {}, nullptr, R"({
    "runtimes": {
        "nvidia": {
            "args": [],
            "path": "nvidia-container-runtime"
        }
    }
}
)"},
    {"AnEmptyFile", {.set_as_default = true}, " \n", R"({
    "runtimes": {
        "nvidia": {
            "args": [],
            "path": "nvidia-container-runtime"
        }
    },
    "default-runtime": "nvidia"
}
)"},
    {"AnEmptyObject",
     {.runtime_path = "/opt/n"},
     "{}",
     R"({"runtimes":{"nvidia":{"args":[],"path":"/opt/n"}}})"},
    {"TheWalkthroughsFileIsKeptAsItIs", {.set_as_default = true}, kSeed, kSeed},
    {"AnotherPathChangesThatAlone",
     {.runtime_path = "/opt/nvidia-container-runtime"},
     "{\n  \"runtimes\": {\"nvidia\": {\"path\": \"/old\", \"runtimeArgs\": [\"-x\"]}}\n}\n",
     "{\n  \"runtimes\": {\"nvidia\": {\"path\": \"/opt/nvidia-container-runtime\", "
     "\"runtimeArgs\": [\"-x\"]}}\n}\n"},
    {"FeaturesAreMergedNotReplaced",
     {.enable_cdi = true},
     "{\n\t\"features\": {\n\t\t\"buildkit\": true\n\t},\n\t\"runtimes\": {\n\t\t\"nvidia\": {\n"
     "\t\t\t\"path\": \"nvidia-container-runtime\"\n\t\t}\n\t}\n}\n",
     "{\n\t\"features\": {\n\t\t\"buildkit\": true,\n\t\t\"cdi\": true\n\t},\n\t\"runtimes\": {\n"
     "\t\t\"nvidia\": {\n\t\t\t\"path\": \"nvidia-container-runtime\"\n\t\t}\n\t}\n}\n"},
    {"OtherRuntimesStay",
     {.runtime_name = "gpu"},
     "{\n    \"runtimes\": {\n        \"kata\": {\n            \"path\": \"kata\"\n        }\n    "
     "},\n"
     "    \"bip\": \"10.0.0.1/8\"\n}\n",
     "{\n    \"runtimes\": {\n        \"kata\": {\n            \"path\": \"kata\"\n        },\n"
     "        \"gpu\": {\n            \"args\": [],\n            \"path\": "
     "\"nvidia-container-runtime\"\n        }\n    },\n    \"bip\": \"10.0.0.1/8\"\n}\n"},
    {"ADefaultIsReplaced",
     {.set_as_default = true},
     "{\n  \"default-runtime\": \"runc\",\n  \"runtimes\": {\n    \"nvidia\": {\n      \"path\": "
     "\"n\"\n"
     "    }\n  }\n}\n",
     "{\n  \"default-runtime\": \"nvidia\",\n  \"runtimes\": {\n    \"nvidia\": {\n      \"path\": "
     "\"n\"\n    }\n  }\n}\n"},
};

INSTANTIATE_TEST_SUITE_P(Engines, Docker, testing::ValuesIn(docker_cases),
                         [](const auto& c) { return c.param.name; });

TEST(DockerPlan, AProgramThatDoesNotExistIsReplaced) {
  test::Tree tree;
  tree.file(kConfig, "{\"runtimes\": {\"nvidia\": {\"path\": \"/opt/old/ncr\"}}}\n");
  const auto stale = make_plan(tree.host(), {});
  ASSERT_TRUE(stale.ok());
  EXPECT_EQ(stale->files[0].after,
            "{\"runtimes\": {\"nvidia\": {\"path\": \"nvidia-container-runtime\"}}}\n");
  EXPECT_THAT(stale->notes, testing::Contains(HasSubstr("/opt/old/ncr, which does not exist")));
  tree.file("opt/old/ncr", "");
  EXPECT_FALSE(make_plan(tree.host(), {})->changes()) << "the administrator's own";
}

TEST(DockerPlan, AFileThatIsNoJsonIsLeftAloneWithTheLine) {
  test::Tree tree;
  tree.file(kConfig, "{\n  \"a\": 1,\n}\n");
  const auto plan = make_plan(tree.host(), {});
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().code(), Errc::Corrupt);
  EXPECT_THAT(plan.error().text(), HasSubstr("/etc/docker/daemon.json: line 3"));
}

TEST(DockerPlan, SomethingElseInItsPlaceIsAnError) {
  for (const auto* text : {"[]", "{\"runtimes\": []}", "{\"runtimes\": {\"nvidia\": 3}}"}) {
    test::Tree tree;
    tree.file(kConfig, text);
    EXPECT_FALSE(make_plan(tree.host(), {}).ok()) << text;
  }
}

TEST(DockerPlan, NamesThatAreNoneAreRefused) {
  const test::Tree tree;
  for (const auto* name : {"", "a b", "a/b", "a\"b", "a\n"}) {
    const auto plan = make_plan(tree.host(), {.runtime_name = name});
    ASSERT_FALSE(plan.ok()) << name;
    EXPECT_EQ(plan.error().code(), Errc::Invalid);
  }
}

}  // namespace
}  // namespace gantry::engines
