// SPDX-License-Identifier: Apache-2.0
// Nodes and pods for the tests of this folder.
#pragma once

#include "cluster/placement/cluster.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace gantry::placement {

inline constexpr std::uint64_t kGiB = 1024;

inline podspec::NodeInfo node(std::string name, const std::vector<std::uint64_t>& gib) {
  podspec::NodeInfo facts{.name = std::move(name)};
  for (std::uint32_t i = 0; i < gib.size(); ++i) {
    facts.cards.push_back({.uuid = {fmt::format("GPU-{}-{}", facts.name, i)},
                           .index = i,
                           .mib = gib[i] * kGiB,
                           .model = "NVIDIA H200",
                           .numa = static_cast<std::int32_t>(i * 2 / gib.size())});
  }
  return facts;
}

inline podspec::ContainerRequest container(std::uint64_t gib, std::uint32_t cores = 0,
                                           std::uint32_t gpus = 1) {
  return {.container = "main",
          .gpus = gpus,
          .memory = {.kind = podspec::Amount::Kind::Units, .value = gib},
          .cores = cores,
          .resource = std::string(podspec::kAliyunGpuMem)};
}

inline podspec::PodRequest pod(std::string uid, std::vector<podspec::ContainerRequest> containers) {
  podspec::PodRequest ask{.pod = {.uid = uid, .name_space = "team", .name = "pod-" + uid}};
  for (std::size_t i = 0; i < containers.size(); ++i)
    if (i > 0) containers[i].container = fmt::format("main{}", i);
  ask.containers = std::move(containers);
  return ask;
}

inline podspec::PodRequest pod(std::string uid, std::uint64_t gib, std::uint32_t cores = 0,
                               std::uint32_t gpus = 1) {
  return pod(std::move(uid), {container(gib, cores, gpus)});
}

inline podspec::PodRequest whole(std::string uid, std::uint32_t gpus = 1) {
  auto ask = pod(std::move(uid), 0, 100, gpus);
  ask.contract = podspec::Contract::Hami;
  ask.containers.front().memory = {};
  return ask;
}

// Indexes of the cards of all containers, one container after the other.
inline std::vector<std::uint32_t> indexes(const Result<podspec::Placement>& placement) {
  std::vector<std::uint32_t> all;
  if (!placement) return all;
  for (const auto& container : *placement)
    for (const auto& part : container.parts) all.push_back(part.index);
  return all;
}

}  // namespace gantry::placement
