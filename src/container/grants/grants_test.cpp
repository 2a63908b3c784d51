// SPDX-License-Identifier: Apache-2.0
#include "container/grants/grants.hpp"

#include "support/tree.hpp"

#include <sys/stat.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::grants {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

model::Grant train_grant(std::string uid = "uid-1") {
  return {.devices = {{"GPU-a"}, {"MIG-b"}},
          .pod = {.uid = std::move(uid), .name_space = "default", .name = "train"},
          .resources = {{"nvidia.com/gpu", {"GPU-a"}}, {"nvidia.com/mig-1g.18gb", {"MIG-b"}}}};
}

unsigned mode_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777U;
}

TEST(Grants, AreReadAsTheyWereWritten) {
  const test::Tree tree;
  ASSERT_TRUE(write(tree.host(), "main", train_grant()).ok());
  const auto got = read(tree.host(), "uid-1", "main");
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_EQ(*got, train_grant());
  EXPECT_EQ(read(tree.host(), "uid-1", "side").error().code(), Errc::NotFound);
  EXPECT_EQ(read(tree.host(), "uid-2", "main").error().code(), Errc::NotFound);
}

TEST(Grants, OfSharesAreReadAsTheyWereWritten) {
  const test::Tree tree;
  model::Grant grant{.pod = {.uid = "uid-1", .name = "train"},
                     .resources = {{"aliyun.com/gpu-mem", {"gib-1"}}}};
  grant.share = model::GrantShare{.name = "slot-1",
                                  .phase = model::ContainerPhase::Sidecar,
                                  .position = 2,
                                  .parts = {{{"GPU-a"}, 3, 4096, 30}, {{"GPU-b"}, 4, 4096, 30}},
                                  .other_slots = {"slot-2"}};
  ASSERT_TRUE(write(tree.host(), "main", grant).ok());
  const auto got = read(tree.host(), "uid-1", "main");
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_EQ(*got, grant);
}

// The agent and the OCI runtime are upgraded one after the other: these bytes must not change.
TEST(Grants, OfTheLastVersionAreWrittenAndReadByteForByte) {
  const std::string plain =
      R"({"version": 1, "devices": ["GPU-a", "MIG-b"], "namespace": "default", "pod": "train", )"
      R"("resources": {"nvidia.com/gpu": ["GPU-a"], "nvidia.com/mig-1g.18gb": ["MIG-b"]}})"
      "\n";
  EXPECT_EQ(to_json(train_grant()), plain);
  EXPECT_EQ(*parse(plain), train_grant(""));

  const std::string empty =
      R"({"version": 1, "devices": [], "namespace": "", "pod": "", "resources": {}})"
      "\n";
  EXPECT_EQ(to_json({}), empty);

  model::Grant grant{.pod = {.name = "a \"b\""}, .resources = {{"r", {}}}};
  grant.share = model::GrantShare{.name = "slot-1",
                                  .phase = model::ContainerPhase::Init,
                                  .position = 2,
                                  .parts = {{{"GPU-a"}, 3, 4096, 30}, {{"GPU-b"}, 4, 4096, 0}},
                                  .other_slots = {"slot-2", "slot-3"}};
  const auto with_phase = [](std::string_view phase) {
    return R"({"version": 1, "devices": [], "namespace": "", "pod": "a \"b\"", )"
           R"("resources": {"r": []}, "share": {"name": "slot-1", "phase": ")" +
           std::string(phase) +
           R"(", "position": 2, "parts": [{"gpu": "GPU-a", "index": 3, "mib": 4096, )"
           R"("cores": 30}, {"gpu": "GPU-b", "index": 4, "mib": 4096, "cores": 0}], )"
           R"("otherSlots": ["slot-2", "slot-3"]}})"
           "\n";
  };
  for (const auto& [phase, word] : {std::pair(model::ContainerPhase::Init, "init"),
                                    std::pair(model::ContainerPhase::Sidecar, "sidecar"),
                                    std::pair(model::ContainerPhase::Main, "main")}) {
    grant.share->phase = phase;
    EXPECT_EQ(to_json(grant), with_phase(word));
    EXPECT_EQ(*parse(with_phase(word)), grant);
  }
}

TEST(Grants, OfHalfASharesAreNone) {
  for (const auto* share :
       {"{}", R"({"name":"a"})", "[]", "1",
        R"({"name":"a","phase":"x","position":0,"parts":[],"otherSlots":[]})",
        R"({"name":"a","phase":"main","position":0,"parts":[{}],"otherSlots":[]})"})
    EXPECT_FALSE(parse(fmt::format(R"({{"devices": [], "share": {}}})", share)).ok()) << share;
}

TEST(Grants, OfAPodGoOneByOne) {
  const test::Tree tree;
  ASSERT_TRUE(write(tree.host(), "main", train_grant()).ok());
  ASSERT_TRUE(write(tree.host(), "side", train_grant()).ok());
  ASSERT_TRUE(remove(tree.host(), "uid-1", "main").ok());
  EXPECT_EQ(read(tree.host(), "uid-1", "main").error().code(), Errc::NotFound);
  EXPECT_TRUE(read(tree.host(), "uid-1", "side").ok());
  ASSERT_TRUE(remove(tree.host(), "uid-1", "side").ok());
  EXPECT_FALSE(tree.host().exists("/run/gantry/grants/uid-1"));
  EXPECT_TRUE(remove(tree.host(), "uid-1", "side").ok());
}

TEST(Grants, CanBeReadByAllAndWrittenByTheirOwner) {
  const test::Tree tree;
  const auto mask = ::umask(0);
  ASSERT_TRUE(write(tree.host(), "main", train_grant()).ok());
  ::umask(mask);
  EXPECT_EQ(mode_of(tree.path("run/gantry/grants/uid-1/main/grant.json")), 0644U);
  for (const auto* directory : {"run/gantry", "run/gantry/grants", "run/gantry/grants/uid-1",
                                "run/gantry/grants/uid-1/main"})
    EXPECT_EQ(mode_of(tree.path(directory)), 0755U) << directory;
}

TEST(Grants, HaveNamesThatLeadNowhereElse) {
  const test::Tree tree;
  for (const auto& name :
       {std::string(), std::string("."), std::string(".."), std::string("..."), std::string("a/b"),
        std::string("../x"), std::string("a\nb"), std::string("a\0b", 3), std::string(254, 'x')}) {
    EXPECT_EQ(write(tree.host(), "main", train_grant(name)).error().code(), Errc::Invalid) << name;
    EXPECT_EQ(write(tree.host(), name, train_grant()).error().code(), Errc::Invalid) << name;
    EXPECT_EQ(remove(tree.host(), name).error().code(), Errc::Invalid) << name;
    EXPECT_EQ(read(tree.host(), name, "main").error().code(), Errc::NotFound) << name;
  }
}

TEST(Grants, AreReadStrictly) {
  EXPECT_THAT(parse(R"({"devices": ["GPU-a"], "more": 1})")->devices,
              ElementsAre(model::GpuUuid{"GPU-a"}));
  for (const auto* text : {"", "[]", "{}", R"({"devices": "GPU-a"})", R"({"devices": [1]})",
                           R"({"devices": ["GPU-a")"}) {
    EXPECT_FALSE(parse(text).ok()) << text;
  }
}

TEST(Grants, HalfWrittenIsNone) {
  test::Tree tree;
  tree.file("run/gantry/grants/uid/main/grant.json", R"({"devices": ["GPU-a")");
  EXPECT_EQ(read(tree.host(), "uid", "main").error().code(), Errc::Corrupt);
  EXPECT_THAT(*list(tree.host()), IsEmpty());
}

TEST(Grants, ArePartOfAPodEvenIfTheyCannotBeRead) {
  test::Tree tree;
  ASSERT_TRUE(write(tree.host(), "main", train_grant("here")).ok());
  tree.file("run/gantry/grants/half/main/grant.json", "{").directory("run/gantry/grants/none");
  EXPECT_THAT(*pods(tree.host()), UnorderedElementsAre("half", "here", "none"));
  EXPECT_THAT(*list(tree.host()), SizeIs(1));
}

TEST(Grants, OfAPodThatIsGoneAreRemovedWithAllThatIsThere) {
  test::Tree tree;
  ASSERT_TRUE(write(tree.host(), "main", train_grant("gone")).ok());
  ASSERT_TRUE(write(tree.host(), "main", train_grant("here")).ok());
  tree.file("run/gantry/grants/gone/main/fence.sock").file("precious");
  tree.link("run/gantry/grants/gone/main/link", tree.path("precious"));
  ASSERT_TRUE(remove(tree.host(), "gone").ok());
  EXPECT_THAT(*list(tree.host()), ElementsAre(GrantFile{"main", train_grant("here")}));
  EXPECT_FALSE(tree.host().exists("/run/gantry/grants/gone"));
  EXPECT_TRUE(tree.host().exists("/precious"));
}

TEST(Grants, OfAMachineWithoutAnyAreNone) {
  const test::Tree tree;
  EXPECT_THAT(*list(tree.host()), IsEmpty());
  EXPECT_THAT(*pods(tree.host()), IsEmpty());
  EXPECT_TRUE(remove(tree.host(), "uid").ok());
}

}  // namespace
}  // namespace gantry::grants
