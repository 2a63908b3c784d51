// SPDX-License-Identifier: Apache-2.0
// Checks the table of hooks against the driver's list of functions, and every way in which a
// program looks them up.
#include "fence/share_under_test.hpp"
#include "gpu/abi/cuda.h"
#include "support/paths.hpp"

#include <dlfcn.h>

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace gantry::fence::test {
namespace {

const std::set<std::string>& hooks() {
  static const std::set<std::string> all = {
#define FENCE_HOOK(symbol) #symbol,
#define FENCE_HOOK_PTSZ(symbol) #symbol, #symbol "_ptsz",
#define FENCE_HOOK_PTDS(symbol) #symbol, #symbol "_ptds",
#include "sharing/fence/hooks.def"
  };
  return all;
}

const std::map<std::string, std::string>& unhooked() {
  static const std::map<std::string, std::string> all = {
#define FENCE_UNHOOKED(symbol, reason) {#symbol, reason},
#include "sharing/fence/unhooked.def"
  };
  return all;
}

std::vector<std::string> driver_exports() {
  std::ifstream in(gantry::test::source_dir() + "/src/gpu/abi/cuda_exports.txt");
  std::vector<std::string> names;
  for (std::string name; std::getline(in, name);) names.push_back(name);
  return names;
}

bool contains(const std::string& name, const std::string& part) {
  return name.find(part) != std::string::npos;
}

// Whether a driver function, by its name, allocates memory or launches work.
bool sounds_like_memory_or_work(const std::string& name) {
  for (const char* part : {"Alloc", "Create", "Launch", "Retain", "Import", "IpcOpenMem", "Map",
                           "Mapped", "Load", "Instantiate", "HostRegister"}) {
    if (contains(name, part)) return true;
  }
  return false;
}

// Functions that only query or describe memory.
bool only_words(const std::string& name) {
  return contains(name, "TensorMap") || contains(name, "UserObject") ||
         contains(name, "GetMipmap") || contains(name, "Bitmap") || contains(name, "TexRef");
}

TEST(Table, EveryExportThatSoundsLikeMemoryOrWorkIsDecidedUpon) {
  const std::vector<std::string> names = driver_exports();
  ASSERT_GT(names.size(), 600U);
  for (const std::string& name : names) {
    if (!sounds_like_memory_or_work(name) || only_words(name)) continue;
    EXPECT_TRUE(hooks().contains(name) || unhooked().contains(name))
        << name << " is in neither hooks.def nor unhooked.def";
  }
}

TEST(Table, NamesWhatTheDriverExports) {
  const std::vector<std::string> names = driver_exports();
  const std::set<std::string> all(names.begin(), names.end());
  for (const std::string& name : hooks()) EXPECT_TRUE(all.contains(name)) << name;
  for (const auto& [name, reason] : unhooked()) {
    EXPECT_TRUE(all.contains(name)) << name;
    EXPECT_FALSE(hooks().contains(name)) << name << " is in both lists";
    EXPECT_FALSE(reason.empty());
  }
}

TEST(Table, BothKindsOfDefaultStreamAreHookedAlike) {
  const std::vector<std::string> names = driver_exports();
  const std::set<std::string> all(names.begin(), names.end());
  for (const std::string& name : hooks()) {
    for (const char* variant : {"_ptsz", "_ptds"}) {
      if (all.contains(name + variant)) {
        EXPECT_TRUE(hooks().contains(name + variant)) << name;
      }
    }
  }
}

class Lookups : public ::testing::Test {
 protected:
  // The library and the name that an address belongs to.
  static std::pair<std::string, std::string> owner(void* address) {
    Dl_info info{};
    if (::dladdr(address, &info) == 0 || info.dli_sname == nullptr) return {};
    return {info.dli_fname, info.dli_sname};
  }

  ShareUnderTest share;
  CudaLibrary cuda{share.fence()};
  CudaLibrary driver{share.driver()};
};

TEST_F(Lookups, ByHandleAProgramFindsTheHooksAndTheRestOfTheDriver) {
  for (const std::string& name : driver_exports()) {
    void* theirs = driver.symbol(name.c_str());
    void* ours = cuda.symbol(name.c_str());
    if (hooks().contains(name)) {
      EXPECT_EQ(owner(ours), (std::pair{share.fence(), name}));
    } else {
      EXPECT_EQ(ours, theirs) << name;
    }
  }
}

// The name of every function, each version of CUDA, each kind of stream: the driver decides which
// function that is, and if we hook it, the caller gets our function of the same name.
class EveryLookup : public Lookups, public ::testing::WithParamInterface<int> {
 protected:
  static std::vector<std::string> names() {
    std::set<std::string> all;
#define CUDA_ENTRY(symbol, name, since, parameters, arguments) all.insert(#name);
#include "gpu/abi/cuda_entries.def"
    return {all.begin(), all.end()};
  }
  void expect_same(void* theirs, void* ours, const std::string& asked) const {
    const auto [library, symbol] = owner(theirs);
    ASSERT_FALSE(symbol.empty()) << asked;
    if (!hooks().contains(symbol)) {
      EXPECT_EQ(ours, theirs) << asked;
      return;
    }
    EXPECT_EQ(owner(ours), (std::pair{share.fence(), symbol})) << asked;
    ++found_;
  }
  mutable int found_ = 0;
};

TEST_P(EveryLookup, GivesTheHookOfTheFunctionThatTheDriverMeans) {
  auto* first = cuda.get<decltype(::cuGetProcAddress)>("cuGetProcAddress");
  for (const std::string& name : names()) {
    for (const cuuint64_t flags : {0U, 1U, 2U}) {
      void* theirs = nullptr;
      void* ours = nullptr;
      CUdriverProcAddressQueryResult their_status{};
      CUdriverProcAddressQueryResult our_status{};
      EXPECT_EQ(driver.cuGetProcAddress(name.c_str(), &theirs, GetParam(), flags),
                first(name.c_str(), &ours, GetParam(), flags));
      if (theirs != nullptr) expect_same(theirs, ours, name);
      EXPECT_EQ(driver.cuGetProcAddress_v2(name.c_str(), &theirs, GetParam(), flags, &their_status),
                cuda.cuGetProcAddress_v2(name.c_str(), &ours, GetParam(), flags, &our_status));
      EXPECT_EQ(their_status, our_status);
      if (theirs != nullptr) {
        expect_same(theirs, ours, name);
      } else {
        EXPECT_EQ(ours, nullptr);
      }
    }
  }
  EXPECT_GT(found_, 100);
}

INSTANTIATE_TEST_SUITE_P(Versions, EveryLookup,
                         ::testing::Values(3020, 7000, 11020, 11080, 12000, 12030, 12050, 12080,
                                           12090, 13000));

TEST_F(Lookups, WhatIsAskedForAgainIsStillOurs) {
  void* found = nullptr;
  ASSERT_EQ(cuda.cuGetProcAddress_v2("cuGetProcAddress", &found, 13000, 0, nullptr), CUDA_SUCCESS);
  auto* again = reinterpret_cast<decltype(&::cuGetProcAddress_v2)>(found);
  ASSERT_EQ(again("cuMemAlloc", &found, 13000, 0, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(owner(found), (std::pair{share.fence(), std::string("cuMemAlloc_v2")}));
  EXPECT_EQ(cuda.cuGetProcAddress_v2("cuNoSuchThing", &found, 13000, 0, nullptr),
            driver.cuGetProcAddress_v2("cuNoSuchThing", &found, 13000, 0, nullptr));
  EXPECT_EQ(cuda.cuGetProcAddress_v2(nullptr, &found, 13000, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda.cuGetProcAddress_v2("cuInit", nullptr, 13000, 0, nullptr),
            CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace gantry::fence::test
