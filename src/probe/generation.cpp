// SPDX-License-Identifier: Apache-2.0
#include "probe/snapshot.hpp"

#include <fmt/format.h>

#include <string_view>

namespace gantry::probe {
namespace {

// FNV-1a: the generation tells versions apart, it protects against nobody.
class Hash {
 public:
  void add(std::string_view text) {
    for (const char c : text) step(static_cast<unsigned char>(c));
    step(0);  // "ab","c" is not "a","bc"
  }
  void add(int number) { add(fmt::to_string(number)); }
  std::string text() const { return fmt::format("{:016x}", value_); }

 private:
  void step(unsigned char byte) { value_ = (value_ ^ byte) * 0x100000001b3ULL; }
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

}  // namespace

std::string generation_of(const model::Inventory& inventory) {
  Hash hash;
  hash.add(inventory.boot_id);
  hash.add(inventory.driver.version);
  for (const auto& gpu : inventory.gpus) {
    hash.add(gpu.uuid.text);
    hash.add(gpu.pci.sysfs());
    hash.add(static_cast<int>(gpu.mig.current));
    for (const auto& mig : gpu.mig.instances) {
      hash.add(mig.uuid.text);
      hash.add(mig.gpu_instance);
      hash.add(mig.compute_instance);
      hash.add(mig.profile);
      hash.add(mig.placement_start);
    }
  }
  return hash.text();
}

}  // namespace gantry::probe
