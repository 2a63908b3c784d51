// SPDX-License-Identifier: Apache-2.0
#include "gpu/abi/cuda.h"

#include "gpu/abi/cuda_facts.hpp"
#include "gpu/abi/disagreements.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string_view>

extern "C" int gantry_cuda_header_as_c11(void);

namespace gantry::abi {
namespace {

struct Entry {
  std::string_view symbol;
  std::string_view name;
  int since;
};

constexpr Entry kEntries[] = {
#define CUDA_ENTRY(symbol, name, since, parameters, arguments) {#symbol, #name, since},
#include "gpu/abi/cuda_entries.def"
};

TEST(CudaHeader, CompilesAsC11WithTheSameLayout) {
  EXPECT_EQ(gantry_cuda_header_as_c11(), static_cast<int>(sizeof(CUDA_MEMCPY3D)));
}

TEST(CudaHeader, AgreesWithTheVendorsHeader) {
  const Facts vendor = vendor_cuda_facts();
  if (auto why = vendor.find("missing"); why != vendor.end()) GTEST_SKIP() << why->second;
  const Facts ours = our_cuda_facts();
  EXPECT_GT(vendor.size(), 500U);
  EXPECT_THAT(disagreements(vendor, ours), ::testing::IsEmpty());
}

TEST(CudaEntries, AreListedOnce) {
  std::set<std::string_view> seen;
  for (const Entry& entry : kEntries) EXPECT_TRUE(seen.insert(entry.symbol).second) << entry.symbol;
}

TEST(CudaEntries, NameIsTheSymbolWithoutItsVersion) {
  for (const Entry& entry : kEntries) {
    std::string_view symbol = entry.symbol;
    const bool versioned = symbol.size() > 3 && symbol.substr(symbol.size() - 3, 2) == "_v";
    EXPECT_EQ(versioned ? symbol.substr(0, symbol.size() - 3) : symbol, entry.name);
  }
}

TEST(CudaEntries, NewerVersionsOfANameComeLater) {
  for (const Entry& older : kEntries) {
    for (const Entry& newer : kEntries) {
      if (older.name != newer.name || older.symbol >= newer.symbol) continue;
      EXPECT_LT(older.since, newer.since) << newer.symbol;
    }
  }
}

}  // namespace
}  // namespace gantry::abi
