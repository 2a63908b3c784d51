// SPDX-License-Identifier: Apache-2.0
#include "gpu/ownership/ownership_store.hpp"

#include "support/tree.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace gantry::ownership {
namespace {

using model::AllocationMode;
using model::GpuUuid;
using model::PciAddress;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

const PciAddress this_gpu{.bus = 0x3b};
const PciAddress other_gpu{.bus = 0x5e};
const GpuUuid uuid_a{"GPU-a"};
const GpuUuid uuid_b{"GPU-b"};
const GpuUsage quiet{.withdrawn = true};

struct Place {
  test::Tree tree;
  std::string file() const { return tree.path("var/lib/gantry/ledger"); }
  OwnershipStore open() const {
    auto ledger = OwnershipStore::open(tree.host());
    EXPECT_TRUE(ledger.ok()) << ledger.error().text();
    return *std::move(ledger);
  }
  std::string content() const { return *tree.host().read(kOwnershipPath); }
  void put(std::string_view content) const {
    std::ofstream(file(), std::ios::binary | std::ios::trunc) << content;
  }
};

void must(const Status& status) {
  ASSERT_TRUE(status.ok()) << status.error().text();
}

TEST(OwnershipStore, RemembersOwnersAcrossItsOwnEnd) {
  const Place place;
  {
    auto ledger = place.open();
    must(ledger.adopt(this_gpu, uuid_a, Owner::Plugin, AllocationMode::Whole));
    must(ledger.adopt(other_gpu, uuid_b, Owner::Plugin, AllocationMode::Replicas));
    must(ledger.change(this_gpu, Owner::Vm, AllocationMode::Vm, quiet));
  }
  const auto ledger = place.open();
  EXPECT_EQ(ledger.state().find(this_gpu)->owner, Owner::Vm);
  EXPECT_EQ(ledger.state().find(other_gpu)->use, AllocationMode::Replicas);
  EXPECT_THAT(ledger.notes(), IsEmpty());
}

TEST(OwnershipStore, HasOneWriter) {
  const Place place;
  auto first = place.open();
  const auto second = OwnershipStore::open(place.tree.host());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), Errc::Busy);
  EXPECT_THAT(second.error().text(), HasSubstr("fuser"));
  { const auto gone = std::move(first); }
  EXPECT_TRUE(OwnershipStore::open(place.tree.host()).ok());
}

TEST(OwnershipStore, ChangesOwnersOnlyWhenTheGpuIsFree) {
  const Place place;
  auto ledger = place.open();
  must(ledger.adopt(this_gpu, uuid_a, Owner::Plugin, AllocationMode::Whole));
  const auto give_to_vm = [&](const GpuUsage& evidence) {
    const auto status = ledger.change(this_gpu, Owner::Vm, AllocationMode::Vm, evidence);
    return status.ok() ? std::string("changed") : status.error().text();
  };
  EXPECT_THAT(give_to_vm({}), HasSubstr("still offered"));
  EXPECT_THAT(give_to_vm({.withdrawn = true, .holders = {"default/train"}}),
              HasSubstr("default/train"));
  EXPECT_THAT(give_to_vm({.withdrawn = true, .pids = {4711}}), HasSubstr("4711"));
  EXPECT_EQ(ledger.state().find(this_gpu)->owner, Owner::Plugin);
  EXPECT_EQ(give_to_vm(quiet), "changed");
  must(ledger.claim({.id = "vm-1", .owner = Owner::Vm, .gpu = this_gpu, .what = "VM db"}));
  const auto back = ledger.change(this_gpu, Owner::Plugin, AllocationMode::Whole, quiet);
  EXPECT_EQ(back.error().code(), Errc::Busy);
  EXPECT_THAT(back.error().text(), HasSubstr("VM db"));
  must(ledger.release("vm-1"));
  must(ledger.change(this_gpu, Owner::Plugin, AllocationMode::Whole, quiet));
}

TEST(OwnershipStore, KeepsAUseUntilTheGpuIsFree) {
  const Place place;
  auto ledger = place.open();
  must(ledger.adopt(this_gpu, uuid_a, Owner::Plugin, AllocationMode::Whole));
  must(ledger.adopt(this_gpu, uuid_a, Owner::Plugin, AllocationMode::Replicas));
  EXPECT_EQ(ledger.state().find(this_gpu)->use, AllocationMode::Whole);
  EXPECT_FALSE(ledger
                   .change(this_gpu, Owner::Plugin, AllocationMode::Replicas,
                           {.withdrawn = true, .holders = {"default/train"}})
                   .ok());
  must(ledger.change(this_gpu, Owner::Plugin, AllocationMode::Replicas, quiet));
  EXPECT_EQ(ledger.state().find(this_gpu)->use, AllocationMode::Replicas);
}

TEST(OwnershipStore, ClaimsAreOfOneEach) {
  const Place place;
  auto ledger = place.open();
  must(ledger.adopt(this_gpu, uuid_a, Owner::Dra, AllocationMode::Mig));
  const Claim first{
      .id = "1", .owner = Owner::Dra, .gpu = this_gpu, .part = "MIG-1", .what = "claim a"};
  must(ledger.claim(first));
  must(ledger.claim(first));
  auto second = first;
  second.id = "2";
  EXPECT_THAT(ledger.claim(second).error().text(), HasSubstr("claim a"));
  second.part = "";
  EXPECT_EQ(ledger.claim(second).error().code(), Errc::Busy) << "the whole GPU has the instance";
  second.part = "MIG-2";
  must(ledger.claim(second));
  EXPECT_THAT(ledger.state().claims, SizeIs(2));
  must(ledger.release("1"));
  must(ledger.release("1"));
  EXPECT_THAT(ledger.state().claims, SizeIs(1));
  EXPECT_EQ(ledger.forget(this_gpu).error().code(), Errc::Busy);
}

TEST(OwnershipStore, AClaimNeedsItsOwnersGpu) {
  const Place place;
  auto ledger = place.open();
  Claim claim{.id = "1", .owner = Owner::Vm, .gpu = this_gpu, .what = "VM db"};
  EXPECT_EQ(ledger.claim(claim).error().code(), Errc::Denied);
  must(ledger.adopt(this_gpu, uuid_a, Owner::Plugin, AllocationMode::Whole));
  EXPECT_THAT(ledger.claim(claim).error().text(), HasSubstr("belongs to plugin"));
  claim.owner = Owner::Plugin;
  EXPECT_EQ(ledger.claim(claim).error().code(), Errc::Invalid);
  claim.owner = Owner::Vm;
  claim.what = std::string(kMaxNameLength + 1, 'x');
  EXPECT_EQ(ledger.claim(claim).error().code(), Errc::Invalid);
}

TEST(OwnershipStore, StaysSmallHoweverOftenOwnersChange) {
  const Place place;
  auto ledger = place.open();
  must(ledger.adopt(this_gpu, uuid_a, Owner::Plugin, AllocationMode::Whole));
  for (int i = 0; i < 3000; ++i)
    must(ledger.change(this_gpu, i % 2 == 0 ? Owner::Vm : Owner::Plugin, AllocationMode::Whole,
                       quiet));
  EXPECT_LT(std::filesystem::file_size(place.file()), std::size_t{300} << 10);
  EXPECT_EQ(ledger.state().sequence, 3001U);
}

// The states a file went through, and where the record of each ends.
struct History {
  std::vector<OwnershipState> states;
  std::vector<std::size_t> ends;
  std::string file;
};

History history() {
  const Place place;
  auto ledger = place.open();
  History result;
  const auto note = [&] {
    result.states.push_back(ledger.state());
    result.file = place.content();
    result.ends.push_back(result.file.size());
  };
  note();
  must(ledger.adopt(this_gpu, uuid_a, Owner::Plugin, AllocationMode::Whole));
  note();
  must(ledger.change(this_gpu, Owner::Vm, AllocationMode::Vm, quiet));
  note();
  must(ledger.claim({.id = "1", .owner = Owner::Vm, .gpu = this_gpu, .what = "VM \"db\"\n"}));
  note();
  return result;
}

TEST(LedgerFile, CutAtAnyByteGivesTheLastWholeRecord) {
  const auto past = history();
  for (std::size_t size = 0; size < past.file.size(); ++size) {
    const auto got = replay_records(std::string_view(past.file).substr(0, size));
    std::size_t whole = 0;  // the line feed may be missing
    while (whole < past.ends.size() && past.ends[whole] - 1 <= size) ++whole;
    ASSERT_EQ(got.any, whole > 0) << size;
    if (whole > 0) {
      ASSERT_EQ(got.state, past.states[whole - 1]) << size;
    }
  }
}

TEST(LedgerFile, WithAnyByteChangedLosesAtMostTheLastRecord) {
  const auto past = history();
  const auto last = past.states.size() - 1;
  for (std::size_t at = 0; at < past.file.size(); ++at) {
    for (const char change : {'\x01', '\x02', '\x20', '\x7f', static_cast<char>(0x80)}) {
      auto damaged = past.file;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      const auto got = replay_records(damaged);
      const bool in_last = at >= past.ends[last - 1] && at != past.file.size() - 1;
      ASSERT_TRUE(got.any) << at;
      ASSERT_TRUE(got.damaged) << at;
      ASSERT_EQ(got.state, past.states[in_last ? last - 1 : last]) << at;
    }
  }
}

TEST(LedgerFile, ThatWasDamagedIsRepairedAndKept) {
  const Place place;
  { must(place.open().adopt(this_gpu, uuid_a, Owner::Vm, AllocationMode::Vm)); }
  const auto whole = place.content();
  place.put(whole + "00000999 torn");
  {
    auto ledger = place.open();
    EXPECT_THAT(ledger.notes(), SizeIs(1));
    EXPECT_EQ(ledger.state().find(this_gpu)->owner, Owner::Vm);
    must(ledger.adopt(other_gpu, uuid_b, Owner::Plugin, AllocationMode::Whole));
  }
  EXPECT_THAT(place.open().notes(), IsEmpty());
  EXPECT_THAT(place.content(), Not(HasSubstr("torn")));
  EXPECT_TRUE(std::filesystem::exists(place.file() + ".damaged"));
}

TEST(LedgerFile, WithNothingToBelieveIsNoLicenceToGuess) {
  const Place place;
  { place.open(); }
  for (const auto* content : {"", "garbage\n"}) {
    place.put(content);
    const auto ledger = OwnershipStore::open(place.tree.host());
    ASSERT_FALSE(ledger.ok());
    EXPECT_EQ(ledger.error().code(), Errc::Corrupt);
    EXPECT_THAT(ledger.error().text(), HasSubstr("mv "));
  }
}

TEST(LedgerFile, MayHaveMoreFields) {
  auto state = parse_state(R"({"version": 2, "sequence": 3, "owners": [{"gpu": "0000:3b:00.0",
    "uuid": "", "owner": "vm", "use": "vm", "since": 5}], "claims": [], "intents": [],
    "unplaced": [], "more": {}})");
  ASSERT_TRUE(state.ok()) << state.error().text();
  EXPECT_EQ(state->find(this_gpu)->owner, Owner::Vm);
  EXPECT_FALSE(parse_state(R"({"version": 2, "sequence": 3, "owners": [{"gpu": "0000:3b:00.0",
    "uuid": "", "owner": "x", "use": "vm"}], "claims": [], "intents": [], "unplaced": []})")
                   .ok());
  EXPECT_FALSE(parse_state(R"({"version": 2, "sequence": 3, "owners": [{"gpu": "GPU-a",
    "uuid": "", "owner": "vm", "use": "vm"}], "claims": [], "intents": [], "unplaced": []})")
                   .ok())
      << "a UUID is not an address";
}

TEST(OwnershipStore, APartHasOneHolder) {
  const Place place;
  auto ledger = place.open();
  must(ledger.adopt(this_gpu, uuid_a, Owner::Vm, AllocationMode::Vm));
  Claim claim{
      .id = "1", .owner = Owner::Vm, .gpu = this_gpu, .part = "0000:3b:00.4", .what = "VM a"};
  must(ledger.claim(claim));
  claim.id = "2";
  claim.what = "VM b";
  EXPECT_THAT(ledger.claim(claim).error().text(), HasSubstr("held by VM a"));
  claim.part = "0000:3b:00.5";
  must(ledger.claim(claim));
  claim.id = "3";
  claim.part = "";
  EXPECT_EQ(ledger.claim(claim).error().code(), Errc::Busy);
}

// Writes changes until it is killed and reports the finished ones through the pipe.
[[noreturn]] void write_until_killed(const Place& place, int pipe) {
  auto ledger = OwnershipStore::open(place.tree.host());
  if (!ledger.ok()) ::_exit(1);
  for (std::uint64_t i = 0;; ++i) {
    const auto owner = i % 2 == 0 ? Owner::Vm : Owner::Plugin;
    if (!ledger->change(this_gpu, owner, AllocationMode::Whole, quiet).ok()) ::_exit(1);
    const auto done = ledger->state().sequence;
    if (::write(pipe, &done, sizeof(done)) != sizeof(done)) ::_exit(1);
  }
}

TEST(OwnershipStore, SurvivesKillAtAnyMoment) {
  const Place place;
  { must(place.open().adopt(this_gpu, uuid_a, Owner::Plugin, AllocationMode::Whole)); }
  for (int round = 0; round < 10; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const auto child = ::fork();
    if (child == 0) write_until_killed(place, ends[1]);
    ::close(ends[1]);
    std::uint64_t done = 0;
    for (int i = 0; i < 5 + 7 * round; ++i)
      ASSERT_EQ(::read(ends[0], &done, sizeof(done)), ssize_t{sizeof(done)});
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    std::uint64_t more = 0;
    while (::read(ends[0], &more, sizeof(more)) == ssize_t{sizeof(more)}) done = more;
    ::close(ends[0]);
    const auto ledger = place.open();
    EXPECT_GE(ledger.state().sequence, done);  // changes that were reported as done are there
    EXPECT_LE(ledger.state().sequence, done + 1);
    EXPECT_EQ(ledger.state().find(this_gpu)->owner == Owner::Vm, ledger.state().sequence % 2 == 0);
  }
}

}  // namespace
}  // namespace gantry::ownership
