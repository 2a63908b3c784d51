// SPDX-License-Identifier: Apache-2.0
#include "gpu/abi/cuda_facts.hpp"
#include "gpu/abi/disagreements.hpp"
#include "gpu/abi/nvml_facts.hpp"

#include <cstdio>

namespace {

int compare(const char* header, const std::map<std::string, std::string>& vendor,
            const std::map<std::string, std::string>& ours) {
  const auto found = gantry::abi::disagreements(vendor, ours);
  std::printf("%s: %zu facts of the vendor's header, %zu disagreements\n", header, vendor.size(),
              found.size());
  for (const auto& line : found) std::printf("  %s\n", line.c_str());
  return found.empty() && vendor.size() > 500 ? 0 : 1;
}

}  // namespace

int main() {
  using namespace gantry::abi;  // NOLINT: a program of one page
  return compare("cuda.h", vendor_cuda_facts(), our_cuda_facts()) |
         compare("nvml.h", vendor_nvml_facts(), our_nvml_facts());
}
