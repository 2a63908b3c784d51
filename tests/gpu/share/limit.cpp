// SPDX-License-Identifier: Apache-2.0
// limit FAMILY...: for each way to allocate: allocates until refused, prints one line, and frees
// after a line on standard input. Does it twice to check that all memory came back.
#include "families.hpp"
#include "said.hpp"

#include <cstring>

namespace {

void one(const Family& family) {
  std::size_t free_before = 0;
  std::size_t free_after = 0;
  std::size_t total = 0;
  MUST(cuMemGetInfo(&free_before, &total));
  auto first = take_all(family, 256 << 20);
  give_all_back(family, first);
  auto second = take_all(family, 256 << 20);
  MUST(cuMemGetInfo(&free_after, &total));
  say("{\"family\": \"%s\", \"granted\": %zu, \"again\": %zu, \"error\": %d, \"strange\": %d, "
      "\"free_before\": %zu, \"free\": %zu, \"total\": %zu, \"granule\": %zu}",
      family.name, first.bytes, second.bytes, second.error,
      first.strange != 0 ? first.strange : second.strange, free_before, free_after, total,
      family.granule);
  wait_for_a_line();
  give_all_back(family, second);
}

}  // namespace

int main(int count, char** words) {
  const CUdevice device = ready();
  usleep(300000);  // until the host has seen what the context takes, it counts as an estimate
  std::size_t total = 0;
  MUST(cuDeviceTotalMem(&total, device));
  say("{\"device_total\": %zu}", total);
  for (const auto& family : families()) {
    bool wanted = count == 1;
    for (int i = 1; i < count; ++i) wanted = wanted || strcmp(words[i], family.name) == 0;
    if (wanted) one(family);
  }
  return 0;
}
