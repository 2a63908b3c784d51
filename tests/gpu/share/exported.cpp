// SPDX-License-Identifier: Apache-2.0
// exported < NAMES: whether all that cuGetProcAddress hands out is also exported, so that the fence
// knows a function by its address. Asks for every name, without its version and stream suffixes
// too, for every CUDA version and kind of default stream.
#include "said.hpp"

#include <dlfcn.h>

#include <cstdint>
#include <initializer_list>
#include <iostream>
#include <map>
#include <set>
#include <string>

namespace {

using Ask1 = int (*)(const char*, void**, int, std::uint64_t);
using Ask2 = int (*)(const char*, void**, int, std::uint64_t, void*);

void add_with_shorter(std::set<std::string>& all, std::string name) {
  all.insert(name);
  for (bool shorter = true; shorter;) {
    shorter = false;
    for (const char* end : {"_ptsz", "_ptds", "_v2", "_v3", "_v4", "_v5"}) {
      const std::string suffix = end;
      if (name.size() <= suffix.size()) continue;
      if (name.compare(name.size() - suffix.size(), suffix.size(), suffix) != 0) continue;
      name.resize(name.size() - suffix.size());
      all.insert(name);
      shorter = true;
    }
  }
}

}  // namespace

int main() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return 1;
  std::map<void*, std::string> at;
  std::set<std::string> asked;
  int shared = 0;
  for (std::string name; std::cin >> name;) {
    void* function = dlsym(driver, name.c_str());
    if (function == nullptr) continue;
    shared += at.emplace(function, name).second ? 0 : 1;
    add_with_shorter(asked, name);
  }
  const auto ask1 = reinterpret_cast<Ask1>(dlsym(driver, "cuGetProcAddress"));
  const auto ask2 = reinterpret_cast<Ask2>(dlsym(driver, "cuGetProcAddress_v2"));
  int answers = 0;
  int differ = 0;
  std::set<std::string> other;
  for (const auto& name : asked) {
    for (const int version : {10000, 11010, 11040, 11080, 12000, 12010, 12020, 12030, 12040, 12050,
                              12060, 12080, 12090, 13000, 13010}) {
      for (const std::uint64_t flags : {0, 1, 2}) {
        void* first = nullptr;
        void* second = nullptr;
        ask1(name.c_str(), &first, version, flags);
        ask2(name.c_str(), &second, version, flags, nullptr);
        if (first != second) ++differ;
        if (second == nullptr) continue;
        ++answers;
        if (at.count(second) == 0) other.insert(name);
      }
    }
  }
  std::string names;
  for (const auto& name : other) names += (names.empty() ? "\"" : ", \"") + name + "\"";
  say("{\"exported\": %zu, \"shared\": %d, \"asked\": %zu, \"answers\": %d, \"differ\": %d, "
      "\"other\": "
      "[%s]}",
      at.size(), shared, asked.size(), answers, differ, names.c_str());
  return 0;
}
