// SPDX-License-Identifier: Apache-2.0
// prefer-worst: how long the longest preferred allocation on 16 GPUs takes, over machines of
// several kinds, every size of request and many sets in use. Prints microseconds. Each request is
// measured several times and the best time counts, because noise only adds time.
#include "node/resources/preferred_allocation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>

namespace gantry {
namespace {

using model::Link;
using model::PciePath;

constexpr int kGpus = 16;
constexpr int kRandomMachines = 6;
constexpr int kSetsInUse = 150;
constexpr int kTries = 5;

template <class LinkOf>
model::Inventory machine(const LinkOf& link_of) {
  model::Inventory made;
  made.links.assign(kGpus, std::vector<Link>(kGpus));
  for (int i = 0; i < kGpus; ++i) {
    auto& gpu = made.gpus.emplace_back();
    gpu.uuid.text = fmt::format("GPU-{:08}-0000-0000-0000-000000000000", i);
    for (int j = 0; j < i; ++j) {
      auto& row = made.links[static_cast<std::size_t>(i)];
      row[static_cast<std::size_t>(j)] = link_of(i, j);
      made.links[static_cast<std::size_t>(j)][static_cast<std::size_t>(i)] =
          row[static_cast<std::size_t>(j)];
    }
  }
  return made;
}

std::vector<model::Inventory> machines(std::mt19937& random) {
  std::vector<model::Inventory> all;
  all.push_back(machine([](int, int) { return Link{.pcie = PciePath::System}; }));
  all.push_back(machine([](int, int) { return Link{.pcie = PciePath::Node, .nvlinks = 18}; }));
  all.push_back(machine([](int i, int j) {
    return i / 2 == j / 2 ? Link{.pcie = PciePath::Node, .nvlinks = 4}
                          : Link{.pcie = PciePath::System};
  }));
  for (int i = 0; i < kRandomMachines; ++i) {
    all.push_back(machine([&](int, int) {
      return Link{.pcie = PciePath::Node, .nvlinks = static_cast<int>(random() % 13)};
    }));
  }
  return all;
}

using Ids = std::vector<std::string>;

double least_us(const resources::PreferredAllocation& preferences, const Ids& available,
                const Ids& required, int size) {
  double least = 1e9;
  for (int i = 0; i < kTries; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const auto chosen = preferences.prefer(available, required, size);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    if (chosen.empty()) return 1e9;
    least = std::min(least, took.count());
  }
  return least;
}

double worst_us(const model::Inventory& of, std::mt19937& random, int& requests) {
  model::AdvertisedResource resource{.name = "nvidia.com/gpu"};
  for (const auto& gpu : of.gpus)
    resource.devices.push_back({.id = gpu.uuid.text, .gpu = gpu.uuid});
  const resources::PreferredAllocation preferences(of, resource,
                                                   options::SharedPolicy::Distributed);
  double worst = 0;
  for (int set = 0; set < kSetsInUse; ++set) {
    Ids available;
    Ids required;
    for (const auto& gpu : of.gpus) {
      if (set != 0 && random() % 6 == 0) continue;  // in use
      available.push_back(gpu.uuid.text);
      if (set % 3 == 2 && random() % 8 == 0) required.push_back(gpu.uuid.text);
    }
    const auto most = static_cast<int>(available.size());
    for (int size = std::max(1, static_cast<int>(required.size())); size <= most; ++size) {
      worst = std::max(worst, least_us(preferences, available, required, size));
      ++requests;
    }
  }
  return worst;
}

}  // namespace
}  // namespace gantry

int main() {
  std::mt19937 random(16);
  double worst = 0;
  int requests = 0;
  for (const auto& of : gantry::machines(random))
    worst = std::max(worst, gantry::worst_us(of, random, requests));
  fmt::print("{:.1f} {}\n", worst, requests);
  return 0;
}
