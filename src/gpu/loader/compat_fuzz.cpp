// SPDX-License-Identifier: Apache-2.0
// Any bytes as a file in an image's compat directory give an error, no note, or a note and a
// decision.
#include "gpu/loader/forward_compat.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gantry::loader;
  const auto elf = Elf::open(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!elf.ok()) return 0;
  const auto note = read_compat_note(*elf);
  if (!note.ok()) return 0;
  (void)decide_compat("575.57.08", *note, {.driver = "570.86.15"});
  (void)decide_compat("575.57.08", *note, {.cuda = "12.8"});
  return 0;
}
