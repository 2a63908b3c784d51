// SPDX-License-Identifier: Apache-2.0
// Every text is read or refused with a reason, by each reader; what is accepted can be written,
// read again and solved.
#include "gpu/mig/checkpoint.hpp"
#include "gpu/mig/config_write.hpp"
#include "gpu/mig/hooks_file.hpp"
#include "gpu/mig/known_models.hpp"
#include "gpu/mig/solve.hpp"

namespace {

using namespace gantry::mig;  // NOLINT(google-build-using-namespace): a program of its own

void check_layout(const MigGpu& gpu, const LayoutRequest& request) {
  const auto decision = solve(gpu, request);
  const auto* refusal = std::get_if<LayoutRefusal>(&decision);
  if (refusal == nullptr) return;
  GANTRY_ASSERT(!refusal->reason.empty());
  if (refusal->nearest)
    GANTRY_ASSERT(std::holds_alternative<LayoutPlan>(solve_quickly(gpu, *refusal->nearest)));
}

void check_config(std::string_view text, const MigGpu& gpu) {
  const auto config = parse_config(text, "mig.yaml");
  if (!config.ok()) return GANTRY_ASSERT(!config.error().text().empty());
  for (const auto& [name, entries] : config->configs) {
    const auto selection = select_config(*config, name, {gpu});
    if (!selection.ok()) continue;
    for (const auto& layout : selection->layouts) check_layout(gpu, layout.request);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto gpu = *known_gpu("H200");
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_config(text, gpu);
  (void)parse_hooks(text, "hooks.yaml");
  const auto saved = parse_checkpoint(text, "saved.json");
  if (saved.ok() && !saved->empty()) {
    const auto layout = saved_layout(saved->front(), gpu);
    if (layout.ok()) check_layout(gpu, *layout);
  }
  const auto request = parse_layout(text);
  if (request.ok()) {
    const auto again = parse_layout(to_words(*request));
    GANTRY_ASSERT(again.ok() && *again == *request);
    check_layout(gpu, *request);
  }
  return 0;
}
