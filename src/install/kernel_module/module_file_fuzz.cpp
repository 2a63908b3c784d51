// SPDX-License-Identifier: Apache-2.0
#include "install/kernel_module/kernel_log_internal.hpp"
#include "install/kernel_module/loaded_modules.hpp"
#include "install/kernel_module/module_dependencies.hpp"
#include "install/kernel_module/module_file.hpp"
#include "install/kernel_module/module_order.hpp"
#include "install/kernel_module/module_signature_internal.hpp"
#include "install/kernel_module/module_trust.hpp"
#include "install/kernel_module/running_kernel.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

// Any bytes give a value or an error: a .ko file, its signature, and the texts of the kernel.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gantry::kernel_module;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto module = parse_module(text);
  if (module.ok()) {
    if (module->depends.size() > 256 || module->version.size() > 4096) std::abort();
    const auto index = parse_module_index(text, text);
    (void)files_to_load_first(*module, index, {}, "6.1.0").ok();
  }
  (void)parse_signer(text);
  (void)parse_mok_list(text);
  (void)parse_trusted_keys(text);
  (void)parse_running_kernel(text, "");
  (void)parse_log_record(text);
  const auto loaded = parse_modules(text);
  const auto order = unload_order(loaded);
  if (order.modules.size() > loaded.size()) std::abort();
  return 0;
}
