// SPDX-License-Identifier: Apache-2.0
// With a real client on a simulated machine; the API server's pods are a map.
#include "node/pod_shares/share_provisioner.hpp"

#include "node/pod_shares/node_snapshot_for_test.hpp"
#include "node/resources/resources.hpp"
#include "sharing/daemon/client.hpp"
#include "support/machine.hpp"
#include "support/paths.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace gantry::pod_shares {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

constexpr std::string_view kMem = "aliyun.com/gpu-mem";

class Filling : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::Machine::has_libraries()) GTEST_SKIP() << "the simulated libraries are not built";
    auto machine = read_snapshot(host_);
    ASSERT_TRUE(machine.ok()) << machine.error().text();
    machine_ = *std::move(machine);
  }
  void TearDown() override {
    (void)filler_.remove_all_except(
        [](const auto&) { return false; });  // the client goes with them
  }

  std::string uuid(std::size_t index) const { return machine_.inventory.gpus[index].uuid.text; }

  // One container "c" that asks for so many GiB, placed on a GPU; -1: nobody placed it.
  void pod(const std::string& uid, std::uint64_t gib, int gpu) {
    std::string notes;
    if (gpu >= 0) {
      const podspec::Placement placement{{"c",
                                          {{uuid(static_cast<std::size_t>(gpu)),
                                            static_cast<std::uint32_t>(gpu), gib * 1024, 0}}}};
      notes = fmt::format("\"gantry.dev/placement\":{}", json::quote(podspec::to_json(placement)));
    }
    pods_[uid] = fmt::format(
        R"({{"metadata":{{"name":"p-{0}","namespace":"d","uid":"{0}","annotations":{{{1}}}}},)"
        R"("spec":{{"nodeName":"n","containers":[{{"name":"c","resources":{{"limits":{{"{2}":"{3}"}}}}}}]}}}})",
        uid, notes, kMem, gib);
  }

  static ContainerStart start(const std::string& uid, const std::vector<std::string>& ids) {
    return {.pod = {.uid = uid}, .containers = {{"c", {{std::string(kMem), ids}}}}};
  }

  daemon::ShareState share(const std::vector<std::string>& ids) {
    auto client = daemon::Client::connect(host_);
    EXPECT_TRUE(client.ok());
    auto state = client->show(resources::slot_name(kMem, ids));
    EXPECT_TRUE(state.ok());
    return state.ok() ? *state : daemon::ShareState{};
  }

  test::Machine simulated_{"h200x8"};
  sys::Host host_ = simulated_.host();
  NodeSnapshot machine_;
  std::map<std::string, std::string> pods_;
  bool api_away_ = false;
  ShareProvisioner filler_{{.host = host_,
                            .share_daemon = {test::built("test-programs/share_daemon_program")},
                            .spec =
                                [] {
                                  return publish::ShareSpecOptions{.cuda_library = "/f.so",
                                                                   .nvml_library = "/n.so"};
                                },
                            .pod = [this](const std::string& uid) -> Result<std::string> {
                              if (api_away_ || pods_.count(uid) == 0)
                                return Error(Errc::Busy, "the API server is away");
                              return pods_.at(uid);
                            },
                            .pods =
                                [this] {
                                  std::vector<std::string> all;
                                  for (const auto& [uid, pod] : pods_) all.push_back(pod);
                                  return all;
                                },
                            .unix_ns = [] { return std::int64_t{7}; },
                            .note = [](const ShareNote&) {}}};
};

TEST_F(Filling, EqualPodsGetWhatTheirPlacementsSayInAnyOrder) {
  pod("a", 4, 5);
  pod("b", 4, 2);
  const std::vector<std::string> first{"gib-0", "gib-1", "gib-2", "gib-3"};
  const std::vector<std::string> second{"gib-4", "gib-5", "gib-6", "gib-7"};
  const auto b = filler_.provision(machine_, start("b", second));
  ASSERT_TRUE(b.ok()) << b.error().text();
  ASSERT_TRUE(filler_.provision(machine_, start("a", first)).ok());
  EXPECT_EQ(share(first).share.gpus[0].text, uuid(5));
  EXPECT_EQ(share(second).share.gpus[0].text, uuid(2));
  EXPECT_EQ(share(first).share.memory->bytes, std::uint64_t{4} << 30U);
  EXPECT_TRUE(host_.exists(publish::slot_spec_path(resources::slot_name(kMem, first))));
  ASSERT_THAT(*b, SizeIs(1));
  EXPECT_THAT((*b)[0].body, HasSubstr(R"("ALIYUN_COM_GPU_MEM_ASSIGNED":"true")"));
}

// As in a pod with the node's root at /host: followed from outside, the link leads to the pod's
// own.
TEST_F(Filling, VarRunLeadsToTheNodesOwnRun) {
  const std::filesystem::path link = host_.outside("/var/run");
  std::filesystem::remove_all(link);
  std::filesystem::create_directory_symlink("/run", link);
  pod("a", 4, 5);
  const std::vector<std::string> ids{"gib-0", "gib-1", "gib-2", "gib-3"};
  const auto filled = filler_.provision(machine_, start("a", ids));
  ASSERT_TRUE(filled.ok()) << filled.error().text();
  EXPECT_TRUE(host_.exists(publish::slot_spec_path(resources::slot_name(kMem, ids))));
  EXPECT_TRUE(std::filesystem::exists(host_.outside("/run/cdi")));
}

TEST_F(Filling, AgainIsTheSame) {
  pod("a", 4, 5);
  const std::vector<std::string> ids{"gib-0"};
  ASSERT_TRUE(filler_.provision(machine_, start("a", ids)).ok());
  const auto first = share(ids);
  ASSERT_TRUE(filler_.provision(machine_, start("a", ids)).ok());
  EXPECT_EQ(share(ids).directory, first.directory);
  EXPECT_THAT(*grants::list(host_), SizeIs(1));
}

TEST_F(Filling, AContainerThatStartsAgainNeedsNoApiServer) {
  pod("a", 4, 5);
  pod("b", 4, 5);
  ASSERT_TRUE(filler_.provision(machine_, start("a", {"gib-0"})).ok());
  api_away_ = true;
  EXPECT_TRUE(filler_.provision(machine_, start("a", {"gib-0"})).ok());
  const auto refused = filler_.provision(machine_, start("b", {"gib-1"}));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::Busy);
}

TEST_F(Filling, WhatAPodWasGivenIsNotChangedByItsAnnotation) {
  pod("a", 4, 5);
  ASSERT_TRUE(filler_.provision(machine_, start("a", {"gib-0"})).ok());
  pod("a", 4, 6);
  ASSERT_TRUE(filler_.provision(machine_, start("a", {"gib-0"})).ok());
  EXPECT_EQ(share({"gib-0"}).share.gpus[0].text, uuid(5));
}

TEST_F(Filling, WhatAPodWasGivenIsItsOwnWhenTheNodeCountsInAnotherUnit) {
  pod("a", 4, 5);
  ASSERT_TRUE(filler_.provision(machine_, start("a", {"gib-0"})).ok());
  machine_.facts.unit_mib = 1;
  const auto again = filler_.provision(machine_, start("a", {"gib-0"}));
  ASSERT_TRUE(again.ok()) << again.error().text();
  EXPECT_EQ(share({"gib-0"}).share.memory->bytes, std::uint64_t{4} << 30U);
}

TEST_F(Filling, NothingIsGivenTwice) {
  pod("a", 100, 5);
  pod("b", 100, 5);
  ASSERT_TRUE(filler_.provision(machine_, start("a", {"gib-0"})).ok());
  const auto refused = filler_.provision(machine_, start("b", {"gib-1"}));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::Busy);
  EXPECT_THAT(refused.error().text(), HasSubstr("d/p-a"));
  EXPECT_THAT(*grants::list(host_), SizeIs(1));
}

TEST_F(Filling, IdsOfAPodThatIsOverAreFreeForTheNext) {
  pod("a", 100, 5);
  pod("b", 100, 5);
  ASSERT_TRUE(filler_.provision(machine_, start("a", {"gib-0", "gib-1"})).ok());
  const auto filled = filler_.provision(machine_, start("b", {"gib-0"}));
  ASSERT_TRUE(filled.ok()) << filled.error().text();
  const auto granted = grants::list(host_);
  ASSERT_THAT(*granted, SizeIs(1));
  EXPECT_EQ(granted->front().grant.pod.uid, "b");
}

TEST_F(Filling, AnUnplacedPodIsPlacedAndAnnotated) {
  pod("a", 100, 0);
  pod("b", 100, -1);
  const auto filled = filler_.provision(machine_, start("b", {"gib-0"}));
  ASSERT_TRUE(filled.ok()) << filled.error().text();
  EXPECT_NE(share({"gib-0"}).share.gpus[0].text, uuid(0));  // promised to the other
  ASSERT_THAT(*filled, SizeIs(1));
  EXPECT_THAT((*filled)[0].body, HasSubstr("gantry.dev/placement"));
}

// The kubelet hands an init container's slot on to the first of those that stay.
TEST_F(Filling, WhatAnInitContainerHadAloneIsRoomForThoseAfterIt) {
  constexpr std::string_view kGpu = "nvidia.com/gpu";
  const auto part = [&](const char* name, std::uint64_t mib) {
    return podspec::ContainerPlacement{name, {{uuid(5), 5, mib, 0}}};
  };
  const podspec::Placement placement{part("i", 100'000), part("a", 30'000), part("b", 30'000)};
  const auto container = [&](const char* name, int mib) {
    return fmt::format(
        R"({{"name":"{}","resources":{{"limits":{{"{}":"1","nvidia.com/gpumem":"{}"}}}}}})", name,
        kGpu, mib);
  };
  pods_["u"] =
      fmt::format(R"({{"metadata":{{"name":"p","namespace":"d","uid":"u","annotations":{{)"
                  R"("gantry.dev/placement":{}}}}},"spec":{{"nodeName":"n","initContainers":[{}],)"
                  R"("containers":[{},{}]}}}})",
                  json::quote(podspec::to_json(placement)), container("i", 100'000),
                  container("a", 30'000), container("b", 30'000));
  pod("other", 40, 5);
  const std::map<std::string, std::vector<std::string>> first{{std::string(kGpu), {"s-0"}}};
  const std::map<std::string, std::vector<std::string>> second{{std::string(kGpu), {"s-1"}}};
  const auto mib = [&](const std::string& id) {
    auto client = daemon::Client::connect(host_);
    const auto state = client->show(resources::slot_name(kGpu, std::vector<std::string>{id}));
    return state.ok() ? state->share.memory->bytes >> 20U : 0;
  };
  const ContainerStart handed_on{.pod = {.uid = "u"}, .containers = {{"i", first}, {"a", first}}};
  ASSERT_TRUE(filler_.provision(machine_, start("other", {"gib-0"})).ok());
  ASSERT_TRUE(filler_.provision(machine_, handed_on).ok());
  EXPECT_EQ(mib("s-0"), 100'000U);
  ASSERT_TRUE(filler_.provision(machine_, handed_on).ok());
  const auto last =
      filler_.provision(machine_, {.pod = {.uid = "u"}, .containers = {{"b", second}}});
  ASSERT_TRUE(last.ok()) << last.error().text();
  EXPECT_EQ(mib("s-0"), 30'000U);
  EXPECT_EQ(mib("s-1"), 30'000U);
  ASSERT_TRUE(filler_.provision(machine_, handed_on).ok()) << "again";
  EXPECT_EQ(mib("s-0"), 70'000U) << "as the pod is charged for, beside b";
}

TEST_F(Filling, TheRestEndsWithoutItsPods) {
  pod("a", 4, 1);
  pod("b", 4, 2);
  ASSERT_TRUE(filler_.provision(machine_, start("a", {"gib-0"})).ok());
  ASSERT_TRUE(filler_.provision(machine_, start("b", {"gib-1"})).ok());
  auto client = daemon::Client::connect(host_);
  ASSERT_TRUE(client.ok());
  // As after a crash between the making of a share and all that follows.
  ASSERT_TRUE(client->create(*policy::parse_share({.name = "slot-lost", .memory = "1GiB"})).ok());
  ASSERT_TRUE(
      filler_.remove_all_except([](const auto& written) { return written.grant.pod.uid == "b"; }));
  EXPECT_THAT(*client->list(), SizeIs(1));
  EXPECT_THAT(publish::slot_spec_names(host_), SizeIs(1));
  EXPECT_EQ(grants::list(host_)->front().grant.pod.uid, "b");
}

TEST_F(Filling, AGrantWithoutAShareIsMadeTrueWhenItIsAskedForAgain) {
  pod("a", 4, 5);
  ASSERT_TRUE(filler_.provision(machine_, start("a", {"gib-0"})).ok());
  auto client = daemon::Client::connect(host_);
  ASSERT_TRUE(client.ok() &&
              client->remove(resources::slot_name(kMem, std::vector<std::string>{"gib-0"})).ok());
  ASSERT_TRUE(publish::remove_slot_spec(
                  host_, resources::slot_name(kMem, std::vector<std::string>{"gib-0"}))
                  .ok());
  ASSERT_TRUE(filler_.provision(machine_, start("a", {"gib-0"})).ok());
  EXPECT_EQ(share({"gib-0"}).share.gpus[0].text, uuid(5));
}

}  // namespace
}  // namespace gantry::pod_shares
