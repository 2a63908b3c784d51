// SPDX-License-Identifier: Apache-2.0
#include "gantry/share_commands.hpp"

#include "base/core/bytes.hpp"
#include "base/core/text.hpp"
#include "container/plan/machine_for_test.hpp"
#include "gantry/share_table.hpp"
#include "sharing/backend/backends.hpp"
#include "sharing/backend/mps_share.hpp"
#include "support/machine.hpp"
#include "support/run_cli.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>

namespace gantry::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;

daemon::ShareState busy_share() {
  daemon::ShareState state;
  state.share = *policy::parse_share({.name = "blue", .memory = "10GiB", .compute = "30%"});
  state.refused = 4;
  state.gpus = {{.uuid = {"GPU-00000000-aaaa-bbbb-cccc-dddddddddddd"},
                 .memory_total = 140 * kGiB,
                 .memory_limit = 10 * kGiB,
                 .memory_held = 3 * kGiB,
                 .memory_used = 4 * kGiB,
                 .part = 0.3,
                 .used = 0.287,
                 .gate = "shut"}};
  state.processes = {{.pid = 4711, .command = "python3 train.py", .gpus = {{.waiting = 2}}}};
  return state;
}

TEST(ShareTable, ShowsLimits) {
  EXPECT_THAT(shares_table({busy_share()}),
              AllOf(HasSubstr("blue"), HasSubstr("GPU-00000000"), HasSubstr("10GiB"),
                    HasSubstr("30%"), HasSubstr("named")));
}

TEST(ShareTable, ShowsWhatIsUsedAsItsOwnerMeansIt) {
  const auto text = usage_table({busy_share()});
  EXPECT_THAT(text, HasSubstr("4.0 GiB / 10.0 GiB"));  // with contexts, as NVML reports it
  EXPECT_THAT(text, HasSubstr("28.7% / 30%"));
  EXPECT_THAT(text, HasSubstr("shut  2"));
  EXPECT_THAT(text, AllOf(HasSubstr("4711"), HasSubstr("python3 train.py")));
  EXPECT_THAT(text, Not(HasSubstr("auditor")));
}

daemon::ShareState share_using(const std::string& name, double time) {
  auto state = busy_share();
  state.share.name = name;
  state.gpus[0].used = time;
  return state;
}

std::size_t widest(const std::string& text) {
  std::size_t most = 0;
  for (const auto line : lines(text)) most = std::max(most, line.size());
  return most;
}

TEST(ShareTable, TheBusiestShareComesFirst) {
  const auto text = usage_table({share_using("calm", 0.01), share_using("b-idle", 0),
                                 share_using("a-idle", 0), share_using("busy", 0.9)});
  EXPECT_LT(text.find("busy"), text.find("calm"));
  EXPECT_LT(text.find("calm"), text.find("a-idle"));
  EXPECT_LT(text.find("a-idle"), text.find("b-idle"));
}

TEST(ShareTable, BarsFillTheRoomThatIsLeft) {
  const auto state = share_using("blue", 0.5);
  EXPECT_THAT(usage_table({state}), Not(HasSubstr("#"))) << "not in a pipe";
  const auto text = usage_table({state}, {.width = 140});
  EXPECT_THAT(text, HasSubstr("##########.......... 50.0% / 30%"));
  EXPECT_THAT(text, HasSubstr("########............ 4.0 GiB / 10.0 GiB"));
}

TEST(ShareTable, FitsTheTerminal) {
  auto state = busy_share();
  state.processes[0].command = "python3 " + std::string(300, 'x') + " --last";
  for (const std::size_t width : {60, 80, 100, 132, 200})
    EXPECT_LE(widest(usage_table({state}, {.width = width})), width);
  EXPECT_THAT(usage_table({state}, {.width = 80}), AllOf(HasSubstr("x..."), HasSubstr("28.7%")));
  EXPECT_THAT(usage_table({state}, {.width = 80, .whole_commands = true}), HasSubstr("--last"));
  EXPECT_THAT(usage_table({state}), HasSubstr("--last")) << "in a pipe";
  state.gpus[0].unmanaged = {{.pid = 815, .memory_used = kGiB, .command = "python3 other.py"}};
  for (const std::size_t width : {60, 80, 100}) {
    EXPECT_LE(widest(shares_table({state}, {.width = width})), width);
    EXPECT_LE(widest(usage_table({state}, {.width = width})), width);
  }
}

TEST(ShareTable, ShowsWhatTheAuditorFound) {
  auto state = busy_share();
  state.findings = {{.pid = 4711, .text = "4711 holds 12 GiB past the fence", .stopped = true}};
  EXPECT_THAT(usage_table({state}), HasSubstr("blue: 4711 holds 12 GiB past the fence (stopped)"));
}

TEST(ShareTable, WarnsOfProcessesOutsideOfTheShares) {
  auto state = busy_share();
  EXPECT_THAT(usage_table({state}), Not(HasSubstr("Warning")));
  state.gpus[0].unmanaged = {{.pid = 815, .memory_used = kGiB, .command = "python3 other.py"}};
  auto beside = state;
  beside.share.name = "red";
  for (const auto& text : {usage_table({state, beside}), shares_table({state, beside})}) {
    const auto at = text.find("815 (python3 other.py, 1.0 GiB)");
    ASSERT_NE(at, std::string::npos) << text;
    EXPECT_EQ(text.find("815", at + 1), std::string::npos) << "once for a GPU";
  }
}

TEST(ShareTable, OnlyOurAdviceNamesTheRoot) {
  const Screen screen{.root = "/machine"};
  for (const auto& text : {usage_table({}, screen), shares_table({}, screen)}) {
    EXPECT_THAT(text, HasSubstr("gantry share run --root /machine --memory"));
    EXPECT_THAT(text, HasSubstr("gantry share create --root /machine NAME"));
  }
  auto state = busy_share();
  state.processes[0].command = "gantry share run --memory 1GiB -- a";
  state.gpus[0].unmanaged = {{.pid = 815, .memory_used = kGiB, .command = "gantry share ls"}};
  for (const auto& text : {usage_table({state}, screen), shares_table({state}, screen)}) {
    EXPECT_THAT(text, HasSubstr("815 (gantry share ls, 1.0 GiB)"));
    EXPECT_THAT(text, HasSubstr("Run them with `gantry share run --root /machine`"));
  }
  EXPECT_THAT(usage_table({state}, screen), HasSubstr(state.processes[0].command));
}

TEST(ShareTable, CutsUuidsWhereTheyAreStillApart) {
  auto one = busy_share();
  auto other = busy_share();
  other.gpus[0].uuid = {"GPU-00000000-aaac-bbbb-cccc-dddddddddddd"};
  for (const auto& text : {shares_table({one, other}), usage_table({one, other})}) {
    EXPECT_THAT(text, AllOf(HasSubstr("GPU-00000000-aaaa "), HasSubstr("GPU-00000000-aaac ")));
  }
  EXPECT_THAT(shares_table({one, one}), HasSubstr("GPU-00000000 "));
}

TEST(ShareTable, SaysHowToMakeAShareWhereThereIsNone) {
  EXPECT_THAT(shares_table({}), HasSubstr("gantry share run"));
}

TEST(ShareFlags, NameGpusByIndexOrUuid) {
  const auto machine = plan::machine_for_test();
  ShareFlags flags{.text = {.compute = "30%"},
                   .gpus = {"1", machine.gpus[0].uuid.text},
                   .work_conserving = true};
  const auto words = resolve_share_text(flags, machine);
  ASSERT_TRUE(words.ok());
  EXPECT_EQ(words->gpus, machine.gpus[1].uuid.text + "," + machine.gpus[0].uuid.text);
  EXPECT_EQ(words->excess, "work-conserving");
  flags.gpus = {"9"};
  EXPECT_EQ(resolve_share_text(flags, machine).error().code(), Errc::NotFound);
}

TEST(ShareFlags, NameAGpuByTheBeginningOfItsUuid) {
  auto machine = plan::machine_for_test();
  machine.gpus[0].uuid.text = "GPU-5d0c1000-7a3e-4c18-9f2b-3e6a90b41000";
  machine.gpus[1].uuid.text = "GPU-5d0c1001-7a3e-4c18-9f2b-3e6a90b41011";
  const auto words = resolve_share_text({.gpus = {"GPU-5d0c1001"}}, machine);
  ASSERT_TRUE(words.ok()) << words.error().text();
  EXPECT_EQ(words->gpus, machine.gpus[1].uuid.text);
  EXPECT_EQ(resolve_share_text({.gpus = {"GPU-5d0c100"}}, machine).error().code(), Errc::NotFound)
      << "it is of two";
  machine.gpus.resize(1);
  EXPECT_EQ(resolve_share_text({.gpus = {"GPU-5"}}, machine).error().code(), Errc::NotFound)
      << "too short";
}

TEST(ShareFlags, ThatCannotHaveBeenMeantAreRefusedWithTheOnesThatWere) {
  const auto machine = plan::machine_for_test();
  EXPECT_THAT(resolve_share_text({.text = {.memory = "10"}}, machine).error().text(),
              HasSubstr("10GiB"));
  EXPECT_THAT(resolve_share_text({.work_conserving = true}, machine).error().text(),
              HasSubstr("--compute"));
  EXPECT_TRUE(resolve_share_text({.text = {.memory = "2MiB"}}, machine).ok());
  EXPECT_TRUE(resolve_share_text({.text = {.memory = "1%"}}, machine).ok());
}

policy::Share asked(const policy::ShareText& text) {
  return *policy::parse_share(text);
}

TEST(Backend, IsTheFenceWhereNothingElseWasAskedFor) {
  const auto machine = plan::machine_for_test();
  EXPECT_EQ(backend::choose_backend(asked({.name = "a", .memory = "1GiB"}), machine).backend,
            policy::Backend::Fence);
}

TEST(Backend, IsMigForAnInstanceWithoutSmallerLimits) {
  const auto machine = plan::machine_for_test();
  const auto instance = machine.gpus[2].mig.instances[0].uuid.text;
  EXPECT_EQ(backend::choose_backend(asked({.name = "a", .gpus = instance}), machine).backend,
            policy::Backend::Mig);
  EXPECT_EQ(
      backend::choose_backend(asked({.name = "a", .gpus = instance, .memory = "1GiB"}), machine)
          .backend,
      policy::Backend::Fence);
}

TEST(Backend, ThatCannotHoldALimitRefusesIt) {
  const test::Tree tree;
  const auto machine = plan::machine_for_test();
  const auto plain = backend::choose_and_check_backend(
      asked({.name = "a", .memory = "1GiB", .backend = "time-slicing"}), machine, tree.host());
  ASSERT_FALSE(plain.ok());
  EXPECT_THAT(plain.error().text(), HasSubstr("--backend fence"));
  const auto whole = backend::choose_and_check_backend(
      asked({.name = "a", .gpus = machine.gpus[0].uuid.text, .backend = "mig"}), machine,
      tree.host());
  ASSERT_FALSE(whole.ok());
  EXPECT_THAT(whole.error().text(), HasSubstr("is not a MIG instance"));
}

TEST(Backend, SharesNeitherAnInstanceFurtherNorAGpuInMigMode) {
  const test::Tree tree;
  const auto machine = plan::machine_for_test();
  const auto instance = backend::choose_and_check_backend(
      asked({.name = "a", .gpus = machine.gpus[2].mig.instances[0].uuid.text, .memory = "1GiB"}),
      machine, tree.host());
  ASSERT_FALSE(instance.ok());
  EXPECT_THAT(instance.error().text(), HasSubstr("already a share"));
  const auto whole = backend::choose_and_check_backend(
      asked({.name = "a", .gpus = machine.gpus[2].uuid.text, .memory = "1GiB"}), machine,
      tree.host());
  ASSERT_FALSE(whole.ok());
  EXPECT_THAT(whole.error().text(), HasSubstr("MIG mode"));
}

TEST(Backend, MpsHasOneDaemonWithTheSharesLimits) {
  auto machine = plan::machine_for_test();
  machine.gpus[1].memory_bytes = 100 * kGiB;
  const auto share = asked({.name = "blue",
                            .gpus = machine.gpus[1].uuid.text,
                            .memory = "25%",
                            .compute = "30%",
                            .backend = "mps"});
  const auto plan = backend::mps_plan(share, machine, {});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->resource, "blue");
  EXPECT_EQ(plan->thread_percentage, 30);
  ASSERT_EQ(plan->gpus.size(), 1U);
  EXPECT_EQ(plan->gpus[0].uuid, machine.gpus[1].uuid);
  EXPECT_EQ(plan->gpus[0].memory_mib, 25U << 10U);
  auto other = share;
  other.name = "red";
  const auto second = backend::mps_plan(other, machine, std::vector{share});
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().text(), HasSubstr("blue"));
}

TEST(Backend, ThatIsNotHereSaysWhatItNeeds) {
  const test::Tree tree;
  const auto share =
      backend::choose_and_check_backend(asked({.name = "a", .memory = "1GiB", .backend = "mps"}),
                                        plan::machine_for_test(), tree.host());
  ASSERT_FALSE(share.ok());
  EXPECT_EQ(share.error().code(), Errc::Unsupported);
  EXPECT_THAT(share.error().text(), HasSubstr("nvidia-cuda-mps-control"));
}

TEST(Backend, NothingIsLeftOfAnMpsShareWhoseDaemonDoesNotStart) {
  test::Machine machine("h200");
  machine.file("/usr/local/nvidia/bin/nvidia-cuda-mps-control", "not a program\n");
  for (const char* command : {"create", "run"}) {
    const auto run = test::run_cli({"gantry", "share", command, "--root", machine.root(),
                                    "--backend", "mps", "--memory", "1GiB", "blue"});
    EXPECT_EQ(run.status, 1);
  }
  EXPECT_FALSE(machine.host().exists("/run/gantry/mps/blue"));
  EXPECT_FALSE(machine.host().exists("/var/run/cdi/gantry-share.json"));
}

TEST(Backend, OfTheKernelIsReportedAsWhatItIs) {
  test::Tree tree;
  const auto machine = plan::machine_for_test();
  const auto dmem = [&] { return backend::list_backends(machine, tree.host()).back(); };
  EXPECT_FALSE(dmem().here);
  EXPECT_THAT(dmem().why, HasSubstr("kernel has no dmem"));
  tree.file("sys/fs/cgroup/dmem.capacity", "drm/0000:03:00.0/vram0 8514437120\n");
  EXPECT_FALSE(dmem().here);
  EXPECT_THAT(dmem().why, HasSubstr("driver registers no memory"));
  tree.file("sys/fs/cgroup/dmem.capacity", "nvidia/0000:18:00.0/vidmem 150754820096\n");
  EXPECT_TRUE(dmem().here);
}

TEST(ShareCommands, WithoutADaemonThereAreNoShares) {
  const test::Tree tree;
  const auto listed = test::run_cli({"gantry", "share", "ls", "--root", tree.root(), "--json"});
  EXPECT_EQ(listed.status, 0);
  EXPECT_EQ(listed.out, "[\n]\n");
  const auto removed = test::run_cli({"gantry", "share", "rm", "blue", "--root", tree.root()});
  EXPECT_EQ(removed.status, 1);
  EXPECT_THAT(removed.err, HasSubstr("the share daemon is not running"));
}

TEST(ShareCommands, SetWithoutAChangeSaysWhatCanBeChanged) {
  const auto set = test::run_cli({"gantry", "share", "set", "blue"});
  EXPECT_EQ(set.status, 2);
  EXPECT_THAT(set.err, HasSubstr("--memory"));
}

TEST(ShareCommands, AnEmptyLimitIsNotNoLimit) {
  const auto empty = test::run_cli({"gantry", "share", "run", "--memory", "", "--", "true"});
  EXPECT_EQ(empty.status, 2);
  EXPECT_THAT(empty.err, HasSubstr("--memory: is empty"));
}

TEST(ShareCommands, ALimitThatCannotBeReadIsWrongUsage) {
  const std::vector<std::vector<std::string>> commands{
      {"run", "true"}, {"create", "blue"}, {"set", "blue"}};
  const std::vector<std::vector<std::string>> limits{
      {"--memory", "lots"},  {"--memory", "10"},      {"--compute", "101%"}, {"--weight", "0"},
      {"--policy", "shout"}, {"--priority", "first"}, {"--unattached", "x"}};
  const test::Tree tree;
  for (const auto& command : commands) {
    for (const auto& limit : limits) {
      const auto run = test::run_cli(
          {"gantry", "share", command[0], "--root", tree.root(), limit[0], limit[1], command[1]});
      EXPECT_EQ(run.status, 2) << command[0] << " " << limit[0] << ": " << run.err;
      EXPECT_THAT(run.err, HasSubstr(limit[1]));
    }
  }
  EXPECT_EQ(test::run_cli({"gantry", "share", "create", "a/b", "--memory", "1GiB"}).status, 2);
  EXPECT_EQ(test::run_cli({"gantry", "share", "run", "--work-conserving", "true"}).status, 2);
  EXPECT_EQ(test::run_cli({"gantry", "share", "explain", "--backend", "magic"}).status, 2);
  for (const auto* pause : {"0", "4000", "soon", "1s"}) {
    const auto top = test::run_cli({"gantry", "share", "top", "--every", pause});
    EXPECT_EQ(top.status, 2);
    EXPECT_THAT(top.err, HasSubstr("is not a number of seconds from 0.1 to 3600"));
  }
}

TEST(ShareCommands, LimitsThatContradictEachOtherAreWrongUsage) {
  EXPECT_EQ(
      test::run_cli({"gantry", "share", "run", "--compute", "30%", "--weight", "2", "true"}).status,
      2);
  EXPECT_EQ(test::run_cli({"gantry", "share", "run", "--hard", "--work-conserving", "true"}).status,
            2);
}

}  // namespace
}  // namespace gantry::cli
