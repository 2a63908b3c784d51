// SPDX-License-Identifier: Apache-2.0
// Any bytes as a libvirt domain: they are read or refused, and the tree keeps to its bounds.
#include "vm/hypervisor/check.hpp"
#include "vm/hypervisor/gpus_for_test.hpp"
#include "vm/hypervisor/vm_description.hpp"

namespace {

std::size_t depth_of(const gantry::hypervisor::XmlElement& element) {
  std::size_t deepest = 0;
  for (const auto& child : element.children) deepest = std::max(deepest, depth_of(child));
  return deepest + 1;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gantry::hypervisor;  // NOLINT: a fuzz target
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto tree = parse_xml(text);
  if (tree.ok()) GANTRY_ASSERT(depth_of(*tree) <= kXmlDepthLimit);
  const std::vector<GuestGpu> machine{card_at("h200", "0000:3b:00.0", 0)};
  const auto domain = describe_domain(text);
  if (domain.ok()) GANTRY_ASSERT(tree.ok());
  (void)check_config(text, machine);
  return 0;
}
