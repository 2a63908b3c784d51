// SPDX-License-Identifier: Apache-2.0
// Any bytes as a QEMU command line.
#include "vm/hypervisor/check.hpp"
#include "vm/hypervisor/gpus_for_test.hpp"
#include "vm/hypervisor/shell_words.hpp"
#include "vm/hypervisor/vm_description.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gantry::hypervisor;  // NOLINT: a fuzz target
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto words = shell_words(text);
  if (words.ok()) GANTRY_ASSERT(words->size() <= kWordLimit + 1);
  const std::vector<GuestGpu> machine{card_at("h200", "0000:3b:00.0", 0)};
  const auto vm = describe_qemu("qemu-system-x86_64 " + std::string(text));
  if (vm.ok()) GANTRY_ASSERT(vm->devices.size() <= kWordLimit);
  (void)check_config(text, machine);
  return 0;
}
