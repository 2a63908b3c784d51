// SPDX-License-Identifier: Apache-2.0
#include "node/resources/preferred_allocation.hpp"

#include "container/plan/machine_for_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <random>

namespace gantry::resources {
namespace {

using model::Link;
using model::PciePath;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

model::Inventory machine_of(int count) {
  model::Inventory machine;
  const auto size = static_cast<std::size_t>(count);
  for (int i = 0; i < count; ++i) {
    machine.gpus.push_back(plan::gpu_for_test(i));
    machine.gpus.back().uuid = {fmt::format("GPU-{}", i)};
  }
  machine.links.assign(size, std::vector<Link>(size, Link{.pcie = PciePath::System}));
  return machine;
}

void connect(model::Inventory& machine, int a, int b, Link link) {
  machine.links[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] = link;
  machine.links[static_cast<std::size_t>(b)][static_cast<std::size_t>(a)] = link;
}

// Pairs 0-1, 2-3, ... with four NVLinks each.
model::Inventory pairs(int count) {
  auto machine = machine_of(count);
  for (int i = 0; i + 1 < count; i += 2)
    connect(machine, i, i + 1, {.pcie = PciePath::Node, .nvlinks = 4});
  return machine;
}

model::AdvertisedResource whole(const model::Inventory& machine) {
  model::AdvertisedResource resource{.name = "nvidia.com/gpu"};
  for (const auto& gpu : machine.gpus)
    resource.devices.push_back({.id = gpu.uuid.text, .gpu = gpu.uuid});
  return resource;
}

std::vector<std::string> gpus(std::initializer_list<int> list) {
  std::vector<std::string> ids;
  for (const int i : list) ids.push_back(fmt::format("GPU-{}", i));
  return ids;
}

std::vector<std::string> prefer(const model::Inventory& machine, std::initializer_list<int> free,
                                int size, std::initializer_list<int> required = {}) {
  const PreferredAllocation preferences(machine, whole(machine),
                                        options::SharedPolicy::Distributed);
  return preferences.prefer(gpus(free), gpus(required), size);
}

TEST(Prefer, TwoArePairedByNvlink) {
  EXPECT_THAT(prefer(pairs(8), {0, 2, 3, 5, 6}, 2), ElementsAre("GPU-2", "GPU-3"));
}

TEST(Prefer, OneDoesNotSplitAPair) {
  EXPECT_THAT(prefer(pairs(8), {0, 1, 2, 3, 5}, 1), ElementsAre("GPU-5"));
}

TEST(Prefer, ThreeTakeAPairAndAGpuThatHasLostItsPartner) {
  EXPECT_THAT(prefer(pairs(8), {0, 1, 2, 3, 6, 7, 5}, 3), ElementsAre("GPU-0", "GPU-1", "GPU-5"));
}

TEST(Prefer, WhatMustBeIncludedIs) {
  EXPECT_THAT(prefer(pairs(8), {0, 1, 2, 3, 4, 5, 6, 7}, 2, {5}), ElementsAre("GPU-4", "GPU-5"));
  EXPECT_THAT(prefer(pairs(4), {0, 1, 2, 3}, 2, {1, 2}), ElementsAre("GPU-1", "GPU-2"));
}

TEST(Prefer, LinksThroughASwitchCount) {
  auto machine = pairs(4);
  connect(machine, 0, 3, {.pcie = PciePath::System, .nvlinks = 18, .nvswitch = true});
  EXPECT_THAT(prefer(machine, {0, 1, 2, 3}, 2), ElementsAre("GPU-0", "GPU-3"));
}

TEST(Prefer, PcieDecidesAmongEqualNvlinksAndNumaAmongEqualPcie) {
  auto machine = machine_of(4);
  connect(machine, 2, 3, {.pcie = PciePath::SingleSwitch});
  EXPECT_THAT(prefer(machine, {0, 1, 2, 3}, 2), ElementsAre("GPU-2", "GPU-3"));
  connect(machine, 2, 3, {.pcie = PciePath::System});
  machine.gpus[1].numa_node = 0;
  machine.gpus[3].numa_node = 0;
  EXPECT_THAT(prefer(machine, {0, 1, 2, 3}, 2), ElementsAre("GPU-1", "GPU-3"));
}

TEST(Prefer, ManyPcieSwitchesDoNotOutweighOneNvlink) {
  auto machine = machine_of(16);
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < i; ++j) connect(machine, i, j, {.pcie = PciePath::SameBoard});
  }
  connect(machine, 8, 9, {.pcie = PciePath::System, .nvlinks = 1});
  const auto eight = prefer(machine, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 8);
  EXPECT_THAT(eight, testing::IsSupersetOf(gpus({8, 9})));
}

TEST(Prefer, WithoutKnownLinksTheLowestAreTaken) {
  auto machine = machine_of(4);
  machine.links.clear();
  EXPECT_THAT(prefer(machine, {3, 1, 2}, 2), ElementsAre("GPU-1", "GPU-2"));
}

TEST(Prefer, OddRequestsAreNoErrors) {
  const auto machine = pairs(4);
  EXPECT_THAT(prefer(machine, {0, 1}, 5), ElementsAre("GPU-0", "GPU-1"));
  EXPECT_THAT(prefer(machine, {0, 1, 77}, 0), IsEmpty());
  EXPECT_THAT(prefer(machine, {0, 1, 77}, -3), IsEmpty());
  EXPECT_THAT(prefer(machine, {}, 2), IsEmpty());
  EXPECT_THAT(prefer(machine, {0, 1, 2}, 1, {0, 2}), ElementsAre("GPU-0", "GPU-2"));
  EXPECT_THAT(prefer(machine, {0, 0, 0, 1}, 2), ElementsAre("GPU-0", "GPU-1"));
}

// The definition of best_set, word for word, over all subsets.
std::vector<int> by_brute_force(const LinkScores& scores, unsigned available, unsigned required,
                                int size) {
  const auto inside = [&](unsigned set) {
    LinkScore sum = 0;
    for (unsigned i = 0; i < 32; ++i) {
      for (unsigned j = 0; j < i; ++j) {
        if ((set >> i & 1U) != 0 && (set >> j & 1U) != 0) sum += scores[i][j];
      }
    }
    return sum;
  };
  const auto members = [](unsigned set) {
    std::vector<int> list;
    for (int i = 0; i < 32; ++i) {
      if ((set >> static_cast<unsigned>(i) & 1U) != 0) list.push_back(i);
    }
    return list;
  };
  std::tuple<LinkScore, LinkScore, std::vector<int>> best;
  bool found = false;
  for (unsigned set = 0; set <= available; ++set) {
    if ((set & ~available) != 0 || (required & ~set) != 0 || std::popcount(set) != size) continue;
    std::tuple candidate{-inside(set), -inside(available & ~set), members(set)};
    if (!found || candidate < best) best = std::move(candidate);
    found = true;
  }
  return std::get<2>(best);
}

std::vector<int> places(unsigned set) {
  std::vector<int> list;
  for (int i = 0; i < 32; ++i) {
    if ((set >> static_cast<unsigned>(i) & 1U) != 0) list.push_back(i);
  }
  return list;
}

TEST(BestSet, IsTheOneThatLookingAtAllSetsFinds) {
  std::mt19937 random(7);
  const auto below = [&](unsigned limit) { return static_cast<unsigned>(random() % limit); };
  for (int round = 0; round < 400; ++round) {
    const auto count = 1 + below(9);
    LinkScores scores(count, std::vector<LinkScore>(count, 0));
    for (unsigned i = 0; i < count; ++i) {
      for (unsigned j = 0; j < i; ++j) scores[i][j] = scores[j][i] = below(3);  // many equals
    }
    const auto available = 1 + below((1U << count) - 1);
    const auto required = available & below(1U << count) & below(1U << count);
    const auto most = std::popcount(available);
    const auto least = std::max(1, std::popcount(required));
    const auto size = least + static_cast<int>(below(static_cast<unsigned>(most - least + 1)));
    EXPECT_EQ(best_set(scores, places(available), places(required), size).chosen,
              by_brute_force(scores, available, required, size))
        << "round " << round;
  }
}

// A millisecond is some million simple steps: the work is counted, which no busy machine changes.
TEST(BestSet, OnSixteenGpusIsExactAndBounded) {
  const LinkScores scores(16, std::vector<LinkScore>(16, 1));
  for (int size = 1; size <= 16; ++size) {
    EXPECT_LE(best_set(scores, places(0xffff), {}, size).sets_examined, 30'000U) << size;
  }
}

// Not __OPTIMIZE__ alone: fmt sets it for itself, and a precompiled header keeps that.
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)
TEST(BestSet, OnSixteenGpusTakesLessThanAMillisecond) {
  auto least = std::chrono::nanoseconds::max();
  const LinkScores scores(16, std::vector<LinkScore>(16, 1));
  const auto all = places(0xffff);
  for (int round = 0; round < 50; ++round) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_THAT(best_set(scores, all, {}, 8).chosen, SizeIs(8));
    least = std::min<std::chrono::nanoseconds>(least, std::chrono::steady_clock::now() - start);
  }
  EXPECT_LT(least, std::chrono::milliseconds(1));
}
#endif

TEST(BestSet, OfVeryManyGpusIsFoundInBoundedTime) {
  LinkScores scores(32, std::vector<LinkScore>(32, 0));
  std::vector<int> all;
  for (int i = 0; i < 32; ++i) {
    all.push_back(i);
    for (int j = 0; j < 32; ++j) {
      if (i != j && i % 2 == j % 2)
        scores[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] = 5;
    }
  }
  const auto best = best_set(scores, all, std::vector{3}, 16);
  EXPECT_LE(best.sets_examined, 100'000U);
  ASSERT_THAT(best.chosen, SizeIs(16));
  for (const int i : best.chosen) EXPECT_EQ(i % 2, 1);
}

// Two GPUs, three replicas each.
struct Replicas {
  model::Inventory machine = machine_of(2);
  model::AdvertisedResource resource{.name = "nvidia.com/gpu.shared",
                                     .use = model::AllocationMode::Replicas};
  Replicas() {
    for (const auto& gpu : machine.gpus) {
      for (int i = 0; i < 3; ++i) {
        resource.devices.push_back(
            {.id = fmt::format("{}::{}", gpu.uuid.text, i), .gpu = gpu.uuid, .replica = i});
      }
    }
  }
  std::vector<std::string> prefer(options::SharedPolicy policy,
                                  const std::vector<std::string>& free, int size) const {
    return PreferredAllocation(machine, resource, policy).prefer(free, {}, size);
  }
};

const std::vector<std::string> one_of_first_taken{"GPU-0::1", "GPU-0::2", "GPU-1::0", "GPU-1::1",
                                                  "GPU-1::2"};

TEST(PreferShared, SpreadsOverTheGpusWithMostLeft) {
  const Replicas replicas;
  EXPECT_THAT(replicas.prefer(options::SharedPolicy::Distributed, one_of_first_taken, 1),
              ElementsAre("GPU-1::0"));
}

TEST(PreferShared, GivesTwoReplicasOfTwoGpusRatherThanOfOne) {
  const Replicas replicas;
  EXPECT_THAT(
      replicas.prefer(options::SharedPolicy::Distributed, {"GPU-0::2", "GPU-1::0", "GPU-1::1"}, 2),
      UnorderedElementsAre("GPU-0::2", "GPU-1::0"));
}

TEST(PreferShared, PacksOnTheGpuWithLeastLeft) {
  const Replicas replicas;
  EXPECT_THAT(replicas.prefer(options::SharedPolicy::Packed, one_of_first_taken, 2),
              ElementsAre("GPU-0::1", "GPU-0::2"));
}

TEST(PreferShared, InstancesAreSpreadOverTheirGpus) {
  auto machine = machine_of(2);
  model::AdvertisedResource resource{.name = "nvidia.com/mig-1g.18gb",
                                     .use = model::AllocationMode::Mig};
  for (const auto* id : {"MIG-0a", "MIG-0b", "MIG-0c", "MIG-1a", "MIG-1b"}) {
    const auto& gpu = machine.gpus[id[4] == '0' ? 0 : 1];
    resource.devices.push_back({.id = id, .gpu = gpu.uuid, .mig = {id}});
  }
  const PreferredAllocation preferences(machine, resource, options::SharedPolicy::Distributed);
  EXPECT_THAT(
      preferences.prefer(std::vector<std::string>{"MIG-0b", "MIG-0c", "MIG-1a", "MIG-1b"}, {}, 1),
      ElementsAre("MIG-1a"));
}

}  // namespace
}  // namespace gantry::resources
