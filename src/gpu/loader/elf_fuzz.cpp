// SPDX-License-Identifier: Apache-2.0
#include "gpu/loader/elf.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto elf =
      gantry::loader::Elf::open(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!elf.ok()) return 0;
  (void)elf->dynamic().ok();
  (void)elf->soname().ok();
  (void)elf->notes().ok();
  (void)elf->version_needs().ok();
  (void)elf->section(".modinfo", 4096).ok();
  return 0;
}
