// SPDX-License-Identifier: Apache-2.0
// Any bytes as a .vmx file. What is found in it does not depend on the order of other settings.
#include "vm/hypervisor/check.hpp"
#include "vm/hypervisor/vmx.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gantry::hypervisor;  // NOLINT: a fuzz target
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto file = VmxFile::parse(text);
  if (!file.ok()) return 0;
  for (const auto& [key, value] : file->values()) GANTRY_ASSERT(file->value(key) == value.text);
  const auto first = check_config(text, {});
  // At the end: a byte order mark counts only at the beginning.
  const auto again = check_config(text + "\ngantry.unused = \"1\"\n", {});
  if (first.ok() && first->kind == FileKind::Vmx && again.ok() && again->kind == FileKind::Vmx)
    GANTRY_ASSERT(first->findings.size() == again->findings.size());
  return 0;
}
