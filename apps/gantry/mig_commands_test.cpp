// SPDX-License-Identifier: Apache-2.0
// gantry mig and nvidia-mig-parted on simulated machines.
#include "gantry/mig_commands.hpp"

#include "gpu/ownership/ownership_store.hpp"
#include "node/owner_lease/agent_for_test.hpp"
#include "support/machine.hpp"
#include "support/parsed_json.hpp"
#include "support/run_cli.hpp"
#include "support/tree.hpp"

#include <stdlib.h>
#include <sys/stat.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace gantry::cli {
namespace {

using owner_lease::TestAgent;
using ownership::OwnershipStore;
using test::run_cli;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr const char* kPci = "0000:00:06.0";  // of machine h200
constexpr std::string_view kConfig = R"(version: v1
mig-configs:
  all-disabled:
    - devices: all
      mig-enabled: false
  halves:
    - devices: all
      mig-enabled: true
      mig-devices: {"3g.71gb": 2}
)";

class MigCommands : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::Machine::has_libraries()) GTEST_SKIP() << "the simulated libraries are not built";
    machine_.file("/run/gantry/.keep", "");
    tree_.file("mig.yaml", kConfig);
  }

  test::CliResult mig(std::vector<std::string> words) const {
    words.insert(words.begin(), {"gantry", "mig"});
    words.insert(words.end(), {"--root", machine_.root()});
    return run_cli(std::move(words));
  }
  test::CliResult parted(std::vector<std::string> words) const {
    ::setenv("GANTRY_ROOT", machine_.root().c_str(), 1);
    words.insert(words.begin(), "nvidia-mig-parted");
    auto result = run_cli(std::move(words));
    ::unsetenv("GANTRY_ROOT");
    return result;
  }
  // "3g.71gb@0 1g.18gb@4" with the UUID of each.
  std::map<std::string, std::string> instances() const {
    const auto listed = mig({"list", "--json"});
    EXPECT_EQ(listed.status, 0) << listed.err;
    const auto document = test::parsed(listed.out);
    std::map<std::string, std::string> found;
    for (const auto instance : document["gpus"].element(0)["instances"]) {
      const auto place = *instance["place"]["start"].u64();
      found[fmt::format("{}@{}", instance["profile"].string_or_empty(), place)] =
          instance["compute"].element(0)["uuid"].string_or_empty();
    }
    return found;
  }
  std::vector<std::string> layout() const {
    std::vector<std::string> names;
    for (const auto& [name, uuid] : instances()) names.push_back(name);
    return names;
  }
  std::string config() const { return tree_.path("mig.yaml"); }

  test::Tree tree_;
  test::Machine machine_{"h200"};
  sys::Host host_ = machine_.host();
};

TEST_F(MigCommands, ApplyKeepsWhatIsWanted) {
  const auto made = mig({"apply", "3g.71gb@0,2g.35gb@4"});
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, AllOf(HasSubstr("turn MIG on"), HasSubstr("create GPU instance 3g.71gb")));
  const auto before = instances();
  const auto changed = mig({"apply", "3g.71gb@0,1g.18gb@4"});
  ASSERT_EQ(changed.status, 0) << changed.err;
  EXPECT_THAT(layout(), testing::ElementsAre("1g.18gb@4", "3g.71gb@0"));
  EXPECT_EQ(instances().at("3g.71gb@0"), before.at("3g.71gb@0"));
  const auto again = mig({"apply", "3g.71gb@0,1g.18gb@4"});
  EXPECT_EQ(again.status, 0);
  EXPECT_THAT(again.out, HasSubstr("has this layout already"));
  EXPECT_THAT(OwnershipStore::peek(host_)->intents, IsEmpty());
}

TEST_F(MigCommands, PlanShowsTheStepsAndChangesNothing) {
  const auto planned = mig({"plan", "3g.71gb,1g.18gb"});
  ASSERT_EQ(planned.status, 0) << planned.err;
  EXPECT_THAT(planned.out, AllOf(HasSubstr("create"), HasSubstr("3g.71gb")));
  EXPECT_THAT(layout(), IsEmpty());
  EXPECT_FALSE(host_.exists("/var/lib/gantry/mig"));
}

TEST_F(MigCommands, ListShowsInstancesAndProfiles) {
  mig({"apply", "3g.71gb,1g.18gb"});
  const auto listed = mig({"list"});
  EXPECT_THAT(listed.out, AllOf(HasSubstr("PROFILE"), HasSubstr("MIG-"), HasSubstr(kPci)));
  EXPECT_THAT(mig({"list", "--profiles"}).out, AllOf(HasSubstr("4g.71gb"), HasSubstr("71424 MiB")));
  EXPECT_THAT(mig({"list", "--gpu", "7"}).err, HasSubstr("there is no GPU 7"));
}

TEST_F(MigCommands, WhatDoesNotFitIsRefused) {
  const auto many = mig({"apply", "3x3g.71gb"});
  EXPECT_EQ(many.status, 1);
  EXPECT_THAT(many.err, HasSubstr("3g.71gb"));
  EXPECT_EQ(mig({"apply", "9g.99gb"}).status, 1);
  EXPECT_EQ(mig({"apply"}).status, 1);
  EXPECT_THAT(layout(), IsEmpty());
}

TEST_F(MigCommands, AssertComparesWithTheMachine) {
  EXPECT_EQ(mig({"assert", "-f", config(), "-c", "all-disabled"}).status, 0);
  EXPECT_EQ(mig({"assert", "-f", config(), "-c", "halves"}).status, 1);
  EXPECT_EQ(mig({"apply", "-f", config(), "-c", "halves"}).status, 0);
  EXPECT_EQ(mig({"assert", "-f", config(), "-c", "halves"}).status, 0);
  EXPECT_EQ(mig({"assert", "on", "--mode-only"}).status, 0);
  EXPECT_EQ(mig({"assert", "-f", config(), "-c", "nothing", "-a"}).status, 1);
  EXPECT_EQ(mig({"assert", "-f", config(), "-c", "halves", "-a"}).status, 0);
  EXPECT_THAT(mig({"export"}).out, AllOf(HasSubstr("current"), HasSubstr("3g.71gb")));
}

// A process with the node of the instance open: no agent runs.
TEST_F(MigCommands, WhatIsInUseIsNamedAndStays) {
  ASSERT_EQ(mig({"apply", "3g.71gb@0,2g.35gb@4"}).status, 0);
  const auto nodes = *host_.read("/proc/driver/nvidia-caps/mig-minors");
  const auto minor_of = [&](const std::string& name) {
    const auto at = nodes.find("\n" + name + " ");
    EXPECT_NE(at, nodes.npos) << name;
    return nodes.substr(at + name.size() + 2, nodes.find('\n', at + 1) - at - name.size() - 2);
  };
  const auto document = test::parsed(mig({"list", "--json"}).out);
  std::string id;
  for (const auto instance : document["gpus"].element(0)["instances"]) {
    if (*instance["place"]["start"].u64() == 4) id = std::to_string(*instance["id"].u64());
  }
  machine_.file("/proc/4711/comm", "train\n");
  machine_.link("/proc/4711/fd/5",
                "/dev/nvidia-caps/nvidia-cap" + minor_of("gpu0/gi" + id + "/ci0/access"));
  const auto refused = mig({"apply", "3g.71gb@0"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("process 4711"), HasSubstr("--drain")));
  EXPECT_THAT(layout(), SizeIs(2));
  EXPECT_THAT(mig({"list"}).out, HasSubstr("process 4711"));
  const auto beside = mig({"apply", "2g.35gb@4,1g.18gb@0"});
  EXPECT_EQ(beside.status, 0) << beside.err;
  EXPECT_EQ(mig({"apply", "off"}).status, 1) << "the mode needs the whole card";
}

TEST_F(MigCommands, AsksTheAgentOnlyForWhatGoes) {
  ASSERT_EQ(mig({"apply", "3g.71gb@0,2g.35gb@4"}).status, 0);
  const auto kept = instances().at("3g.71gb@0");
  TestAgent agent(host_);
  const auto changed = mig({"apply", "3g.71gb@0,1g.18gb@4"});
  ASSERT_EQ(changed.status, 0) << changed.err;
  EXPECT_TRUE(agent.wait_for_notes(3));
  EXPECT_THAT(agent.notes(),
              testing::ElementsAre(HasSubstr("withdraw: "), "keeps: " + kept, "offer again"));
  agent.set_usage({{.withdrawn = true, .holders = {"pod default/train"}}});
  const auto refused = mig({"apply", "off"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, HasSubstr("pod default/train"));
  EXPECT_THAT(layout(), SizeIs(2));
}

TEST_F(MigCommands, AnInterruptedChangeIsNamedAndMended) {
  ASSERT_EQ(mig({"apply", "3g.71gb@0,2g.35gb@4"}).status, 0);
  auto state = *mig_change::read_state(host_, *model::PciAddress::parse(kPci));
  const auto former = *state.stored;
  state.change =
      mig_change::StoredChange{.what = "gantry mig apply --gpu 0000:00:06.0 3g.71gb@0",
                               .former = former,
                               .wanted = {.enabled = true, .instances = {former.instances.at(0)}}};
  machine_.file(mig_change::state_path(state.gpu), mig_change::to_json(state));
  EXPECT_THAT(mig({"list"}).err, AllOf(HasSubstr("was interrupted"), HasSubstr("--former")));
  EXPECT_EQ(mig({"assert", "3g.71gb@0,2g.35gb@4"}).status, 1);
  EXPECT_EQ(mig({"restore", "--former"}).status, 0);
  EXPECT_THAT(layout(), SizeIs(2));
  EXPECT_EQ(mig({"restore", "--former"}).status, 1) << "nothing is interrupted any more";
  machine_.file(mig_change::state_path(state.gpu), mig_change::to_json(state));
  EXPECT_EQ(mig({"restore"}).status, 0);
  EXPECT_THAT(layout(), testing::ElementsAre("3g.71gb@0"));
}

TEST_F(MigCommands, AChangeOfAnotherCommandMustEndFirst) {
  {
    auto ledger = *OwnershipStore::open(host_);
    const auto gpu = *model::PciAddress::parse(kPci);
    ASSERT_TRUE(ledger.adopt(gpu, {}, ownership::Owner::Plugin, model::AllocationMode::Whole).ok());
    ASSERT_TRUE(ledger
                    .begin({.gpu = gpu,
                            .to = ownership::Owner::Vm,
                            .use = model::AllocationMode::Vm,
                            .what = "gantry vfio bind 0000:00:06.0",
                            .pid = 4711},
                           {.withdrawn = true})
                    .ok());
  }
  const auto refused = mig({"apply", "1g.18gb"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, HasSubstr("gantry vfio bind"));
  EXPECT_THAT(layout(), IsEmpty());
}

TEST_F(MigCommands, PartedAppliesAssertsAndExports) {
  const auto applied = parted({"apply", "-f", config(), "-c", "halves"});
  ASSERT_EQ(applied.status, 0) << applied.err;
  EXPECT_THAT(applied.out, HasSubstr("MIG configuration applied successfully"));
  EXPECT_THAT(layout(), SizeIs(2));
  EXPECT_EQ(parted({"assert", "-f", config(), "-c", "halves"}).status, 0);
  EXPECT_EQ(parted({"assert", "-f", config(), "-c", "all-disabled"}).status, 1);
  EXPECT_EQ(parted({"assert", "-f", config(), "-c", "all-disabled", "--valid-config"}).status, 0);
  EXPECT_EQ(parted({"apply", "-c", "halves"}).status, 1);
  EXPECT_THAT(parted({"export", "-o", "json"}).out, HasSubstr("\"3g.71gb\""));
  EXPECT_THAT(parted({"generate-config"}).out, HasSubstr("all-balanced"));
}

TEST_F(MigCommands, PartedSavesAndRestores) {
  ASSERT_EQ(mig({"apply", "3g.71gb@4,1g.18gb@0"}).status, 0);
  const auto before = instances();
  ASSERT_EQ(parted({"checkpoint", "-f", tree_.path("saved")}).status, 0);
  ASSERT_EQ(parted({"apply", "-f", config(), "-c", "all-disabled"}).status, 0);
  EXPECT_THAT(layout(), IsEmpty());
  const auto restored = parted({"restore", "-f", tree_.path("saved")});
  EXPECT_EQ(restored.status, 0) << restored.err;
  EXPECT_EQ(instances(), before);
}

TEST_F(MigCommands, PartedRunsItsHooks) {
  const auto hooks = fmt::format(R"(version: v1
hooks:
  apply-start:
    - workdir: {0}
      command: sh
      args: [-c, "echo start $MIG_PARTED_SELECTED_CONFIG $X >> log"]
      envs: {{X: y}}
  pre-apply-mode:
    - workdir: {0}
      command: sh
      args: [-c, "echo mode >> log"]
  apply-exit:
    - workdir: {0}
      command: sh
      args: [-c, "echo exit >> log"]
)",
                                 tree_.root());
  tree_.file("hooks.yaml", hooks);
  ::chmod(tree_.path("hooks.yaml").c_str(), 0600);
  const auto applied =
      parted({"apply", "-f", config(), "-c", "halves", "-k", tree_.path("hooks.yaml")});
  ASSERT_EQ(applied.status, 0) << applied.err;
  EXPECT_EQ(*tree_.host().read("log"), "start halves y\nmode\nexit\n");
  tree_.file("failing.yaml",
             "version: v1\nhooks:\n  apply-start:\n    - {workdir: /, command: sh, args: [-c, "
             "'echo no; exit 3']}\n");
  ::chmod(tree_.path("failing.yaml").c_str(), 0600);
  const auto failed =
      parted({"apply", "-f", config(), "-c", "all-disabled", "-k", tree_.path("failing.yaml")});
  EXPECT_EQ(failed.status, 1);
  EXPECT_THAT(failed.err, AllOf(HasSubstr("apply-start"), HasSubstr("ended with 3: no")));
  EXPECT_THAT(layout(), SizeIs(2));
  ::chmod(tree_.path("hooks.yaml").c_str(), 0666);
  const auto open =
      parted({"apply", "-f", config(), "-c", "all-disabled", "-k", tree_.path("hooks.yaml")});
  EXPECT_EQ(open.status, 1);
  EXPECT_THAT(open.err, HasSubstr("hooks"));
}

}  // namespace
}  // namespace gantry::cli
