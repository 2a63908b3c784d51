// SPDX-License-Identifier: Apache-2.0
// Typical nodes, namespaces and requests: cards of four sizes, mostly small shares, some whole
// cards; three of four namespaces have a quota.
#include "support/simulated_cluster/cluster_simulation.hpp"

#include <fmt/format.h>

#include <array>

namespace gantry::simulate {
namespace {

constexpr std::uint64_t kGiB = 1024;
constexpr std::array<std::uint64_t, 4> kCards{140, 80, 48, 24};
constexpr std::array<std::uint64_t, 12> kAsks{1, 2, 4, 4, 8, 10, 16, 20, 24, 40, 60, 80};
constexpr std::uint64_t kTeams = 20;

}  // namespace

void ClusterSimulation::add_node(std::size_t number) {
  podspec::NodeInfo facts{.name = fmt::format("node-{:04}", number)};
  const bool mixed = number % 5 == 0;
  for (std::uint32_t i = 0; i < 8; ++i) {
    const auto kind = mixed ? (number / 5 + i / 4) % kCards.size() : number % kCards.size();
    facts.cards.push_back({.uuid = {fmt::format("GPU-{:04}-{}", number, i)},
                           .index = i,
                           .mib = kCards[kind] * kGiB,
                           .model = kind == 0 ? "NVIDIA H200" : "NVIDIA A100",
                           .numa = static_cast<std::int32_t>(i / 4)});
  }
  auto& node = nodes_.emplace_back();
  for (const auto& card : facts.cards) node.cards.push_back({.uuid = card.uuid, .totals = {}});
  node.facts = std::move(facts);
}

void ClusterSimulation::add_teams() {
  for (std::uint64_t i = 0; i < kTeams; ++i) {
    auto& team = teams_.emplace_back();
    team.name_space = fmt::format("team-{}", i);
    if (options_.quotas) team.quota = random_quota(i % 4 < 2 ? 100 : 0, i % 4 % 2 == 0 ? 50 : 0);
  }
}

// A random fraction of an equal part of the cluster for each namespace.
placement::Quota ClusterSimulation::random_quota(std::uint64_t mib_percent,
                                                 std::uint64_t cores_percent) const {
  std::uint64_t mib = 0;
  std::uint64_t cores = 0;
  for (const auto& node : nodes_) {
    for (const auto& card : node.facts.cards) mib += card.mib;
    cores += 100 * node.facts.cards.size();
  }
  return {.mib = mib / kTeams * mib_percent / 100, .cores = cores / kTeams * cores_percent / 100};
}

podspec::PodRequest ClusterSimulation::random_request(Index number) {
  podspec::PodRequest ask{.pod = {.uid = fmt::format("uid-{}", number),
                                  .name_space = teams_[number % teams_.size()].name_space,
                                  .name = fmt::format("pod-{}", number)},
                          .priority = static_cast<std::int32_t>(random_() % 3)};
  podspec::ContainerRequest main{
      .container = "main",
      .memory = {.kind = podspec::Amount::Kind::Units, .value = kAsks[random_() % kAsks.size()]},
      .cores = random_() % 3 == 0 ? static_cast<std::uint32_t>(random_() % 60) : 0,
      .resource = std::string(podspec::kAliyunGpuMem)};
  const auto kind = random_() % 100;
  if (kind < 3) {  // an exclusive card
    main.memory = {};
    main.cores = 100;
    main.gpus = kind == 0 ? 2 : 1;
  } else if (kind < 8) {
    main.gpus = 2 + static_cast<std::uint32_t>(random_() % 3);
    if (kind == 5) ask.affinity.topology = podspec::TopologyPolicy::Numa;
  } else if (kind < 12) {
    main.memory = {.kind = podspec::Amount::Kind::Percent, .value = 1 + random_() % 60};
  } else if (kind == 12) {
    ask.affinity.types = {"h200"};
  }
  if (kind >= 90) {
    auto init = main;
    init.container = "init";
    init.phase = kind < 95 ? model::ContainerPhase::Init : model::ContainerPhase::Sidecar;
    init.memory.value = 1 + random_() % 12;
    ask.containers.push_back(init);
  }
  ask.containers.push_back(main);
  if (kind >= 80 && kind < 85) {
    main.container = "second";
    ask.containers.push_back(main);
  }
  return ask;
}

}  // namespace gantry::simulate
