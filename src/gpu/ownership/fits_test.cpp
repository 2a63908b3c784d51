// SPDX-License-Identifier: Apache-2.0
#include "gpu/ownership/fits.hpp"

#include "base/core/bytes.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

namespace gantry::ownership {
namespace {

using model::AllocationMode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Reason = CardRefusal::Reason;

std::vector<Reason> reasons(const Card& card, const std::vector<Holding>& holdings,
                            const HoldingRequest& wanted) {
  std::vector<Reason> found;
  for (const auto& refusal : fits(card, holdings, wanted)) found.push_back(refusal.reason);
  return found;
}

HoldingRequest share(std::string holder, std::uint64_t memory, std::uint32_t percent = 0) {
  return {.holding = {.holder = std::move(holder),
                      .mode = AllocationMode::Shares,
                      .memory_bytes = memory,
                      .percent = percent}};
}

const Card shared{.name = "0000:3b:00.0", .use = AllocationMode::Shares, .memory_bytes = 10 * kGiB};
const Card of_vm{.name = "0000:3b:00.0", .owner = Owner::Vm, .use = AllocationMode::Vm};

TEST(Fits, AWholeGpuHasOneHolder) {
  const Card card{.name = "0000:3b:00.0"};
  EXPECT_THAT(reasons(card, {}, {.holding = {.holder = "a"}}), IsEmpty());
  EXPECT_THAT(reasons(card, {{.holder = "a"}}, {.holding = {.holder = "a"}}), IsEmpty())
      << "the same holder again";
  const auto refusals =
      fits(card, std::vector<Holding>{{.holder = "a"}}, {.holding = {.holder = "b"}});
  EXPECT_THAT(refusals, ElementsAre(CardRefusal{.reason = Reason::Held, .holders = {"a"}}));
}

TEST(Fits, AGpuGoesOnlyToItsOwner) {
  EXPECT_THAT(reasons(of_vm, {}, {.holding = {.holder = "pod", .mode = AllocationMode::Vm}}),
              ElementsAre(Reason::Owner));
  EXPECT_THAT(reasons(of_vm, {}, {.holding = {.holder = "pod"}}),
              ElementsAre(Reason::Owner, Reason::Use));
  auto changing = of_vm;
  changing.changing = true;
  EXPECT_THAT(
      reasons(changing, {},
              {.owner = Owner::Vm, .holding = {.holder = "VM", .mode = AllocationMode::Vm}}),
      ElementsAre(Reason::Changing));
}

TEST(Fits, PartsExcludeEachOtherAndTheWhole) {
  const HoldingRequest part{
      .owner = Owner::Vm, .holding = {.holder = "VM b", .mode = AllocationMode::Vm, .part = "vf1"}};
  const Holding first{.holder = "VM a", .mode = AllocationMode::Vm, .part = "vf0"};
  EXPECT_THAT(reasons(of_vm, {first}, part), IsEmpty());
  auto same = first;
  same.part = "vf1";
  EXPECT_THAT(reasons(of_vm, {same}, part), ElementsAre(Reason::Held));
  auto whole = first;
  whole.part = "";
  EXPECT_THAT(reasons(of_vm, {whole}, part), ElementsAre(Reason::Held));
  const HoldingRequest everything{.owner = Owner::Vm,
                                  .holding = {.holder = "VM b", .mode = AllocationMode::Vm}};
  EXPECT_THAT(reasons(of_vm, {first}, everything), ElementsAre(Reason::Held));
}

TEST(Fits, ReplicasDoNotExcludeEachOther) {
  const Card card{.use = AllocationMode::Replicas};
  EXPECT_THAT(reasons(card, {{.holder = "a", .mode = AllocationMode::Replicas}},
                      {.holding = {.holder = "b", .mode = AllocationMode::Replicas}}),
              IsEmpty());
}

TEST(Fits, SharesStayWithinMemoryAndTime) {
  const auto present = share("a", 6 * kGiB, 60).holding;
  EXPECT_THAT(reasons(shared, {present}, share("b", 4 * kGiB, 40)), IsEmpty());
  EXPECT_THAT(reasons(shared, {present}, share("b", 4 * kGiB + 1, 41)),
              ElementsAre(Reason::Memory, Reason::Time));
  EXPECT_THAT(reasons(shared, {}, share("b", 11 * kGiB)),
              ElementsAre(Reason::TooBig, Reason::Memory));
  auto overcommitted = share("b", 9 * kGiB, 90);
  overcommitted.overcommit = true;
  EXPECT_THAT(reasons(shared, {present}, overcommitted), IsEmpty());
  EXPECT_THAT(reasons(shared, {share("a", 9 * kGiB).holding, share("b", 8 * kGiB).holding},
                      share("b", 7 * kGiB)),
              IsEmpty())
      << "smaller than before, on a card that is overcommitted";
}

TEST(Fits, AHolderThatIsAloneExcludesOthers) {
  auto alone = share("a", kGiB, 100);
  alone.holding.alone = true;
  EXPECT_THAT(reasons(shared, {}, alone), IsEmpty());
  EXPECT_THAT(reasons(shared, {alone.holding}, share("b", kGiB)), ElementsAre(Reason::Held));
  EXPECT_THAT(reasons(shared, {share("b", kGiB).holding}, alone), ElementsAre(Reason::Held));
}

TEST(Fits, SumsDoNotOverflow) {
  const auto half = share("a", ~std::uint64_t{0} / 2 + 1).holding;
  auto other = half;
  other.holder = "b";
  EXPECT_THAT(reasons(shared, {half, other}, share("c", kGiB)), ElementsAre(Reason::Memory));
}

TEST(Fits, SaysWhoIsInTheWay) {
  const auto error =
      check_fits(of_vm, std::vector<Holding>{{.holder = "VM db", .mode = AllocationMode::Vm}},
                 {.owner = Owner::Vm, .holding = {.holder = "VM web", .mode = AllocationMode::Vm}})
          .error();
  EXPECT_EQ(error.code(), Errc::Busy);
  EXPECT_THAT(error.text(), HasSubstr("0000:3b:00.0 is held by VM db"));
  const auto denied = check_fits(of_vm, {}, {.holding = {.holder = "pod x"}}).error();
  EXPECT_EQ(denied.code(), Errc::Denied);
  EXPECT_THAT(denied.text(), HasSubstr("belongs to vm"));
}

// A card that gives a holding whenever fits() allows it, and changes its owner and use whenever
// nothing holds it.
class RandomCard {
 public:
  explicit RandomCard(std::uint32_t seed) : random_(seed) {
    card_.name = "card";
    card_.memory_bytes = (1 + pick(16)) * kGiB;
  }

  void step() {
    switch (pick(6)) {
      case 0: return release();
      case 1: return change_owner();
      default: return take();
    }
  }

  const Card& card() const { return card_; }
  const std::vector<Holding>& holdings() const { return holdings_; }

 private:
  static constexpr std::array kModes{AllocationMode::Whole, AllocationMode::Replicas,
                                     AllocationMode::Mig, AllocationMode::Shares,
                                     AllocationMode::Vm};

  std::uint32_t pick(std::uint32_t below) { return static_cast<std::uint32_t>(random_() % below); }

  void release() {
    if (holdings_.empty()) return;
    holdings_.erase(holdings_.begin() + pick(static_cast<std::uint32_t>(holdings_.size())));
  }

  void change_owner() {
    if (!holdings_.empty()) return;
    card_.changing = pick(4) == 0;
    card_.owner = static_cast<Owner>(pick(3));
    card_.use = card_.owner == Owner::Vm ? AllocationMode::Vm : kModes[pick(4)];
  }

  void take() {
    HoldingRequest wanted{.owner = static_cast<Owner>(pick(3)),
                          .holding = {.holder = fmt::format("h{}", pick(6)),
                                      .mode = pick(3) == 0 ? kModes[pick(5)] : card_.use}};
    const bool has_parts =
        wanted.holding.mode == AllocationMode::Mig || wanted.holding.mode == AllocationMode::Vm;
    if (has_parts && pick(3) > 0) wanted.holding.part = fmt::format("p{}", pick(4));
    if (wanted.holding.mode == AllocationMode::Shares) {
      wanted.holding.memory_bytes = pick(20) * kGiB;
      wanted.holding.percent = pick(101);
      wanted.holding.alone = pick(8) == 0;
    }
    if (!fits(card_, holdings_, wanted).empty()) return;
    EXPECT_EQ(wanted.owner, card_.owner) << "given to another owner's face";
    EXPECT_FALSE(card_.changing) << "given while its owner was being changed";
    std::erase_if(holdings_, [&](const Holding& old) {
      return old.holder == wanted.holding.holder && old.part == wanted.holding.part;
    });
    holdings_.push_back(wanted.holding);
  }

  std::mt19937 random_;
  Card card_;
  std::vector<Holding> holdings_;
};

// Written down again, so that a mistake in Holding::exclusive() cannot hide itself.
bool must_be_alone(const Holding& holding) {
  if (holding.alone) return true;
  switch (holding.mode) {
    case AllocationMode::Whole:
    case AllocationMode::Mig:
    case AllocationMode::Vm: return holding.part.empty();
    default: return false;
  }
}

void check_invariants(const RandomCard& random, const std::string& where) {
  std::uint64_t memory = 0;
  std::uint64_t time = 0;
  std::vector<std::string> parts;
  bool exclusive = false;
  for (const auto& holding : random.holdings()) {
    memory += holding.memory_bytes;
    time += holding.percent;
    exclusive = exclusive || must_be_alone(holding);
    if (!holding.part.empty()) parts.push_back(holding.part);
    ASSERT_EQ(holding.mode, random.card().use) << where;
  }
  ASSERT_TRUE(!exclusive || random.holdings().size() == 1) << where << ": two exclusive holders";
  ASSERT_LE(memory, random.card().memory_bytes) << where;
  ASSERT_LE(time, 100U) << where;
  std::sort(parts.begin(), parts.end());
  ASSERT_EQ(std::adjacent_find(parts.begin(), parts.end()), parts.end()) << where << ": one part";
  if (random.card().owner != Owner::Vm) return;
  for (const auto mode : {AllocationMode::Whole, AllocationMode::Replicas, AllocationMode::Mig,
                          AllocationMode::Shares, AllocationMode::Vm}) {
    ASSERT_FALSE(fits(random.card(), random.holdings(),
                      {.owner = Owner::Plugin, .holding = {.holder = "pod", .mode = mode}})
                     .empty())
        << where << ": the card of a virtual machine was offered";
  }
}

TEST(Fits, NoSequenceBreaksTheRules) {
  std::size_t most = 0;
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    RandomCard random(seed);
    for (int step = 0; step < 200; ++step) {
      random.step();
      check_invariants(random, fmt::format("seed {} step {}", seed, step));
      if (testing::Test::HasFatalFailure()) return;
      most = std::max(most, random.holdings().size());
    }
  }
  EXPECT_GE(most, 3U) << "the sequences never had several holders";
}

}  // namespace
}  // namespace gantry::ownership
