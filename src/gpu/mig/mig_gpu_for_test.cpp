// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig/mig_gpu_for_test.hpp"

#include "gpu/mig/known_models.hpp"

#include <fmt/format.h>

namespace gantry::mig {

void name_instances_for_test(MigGpu& gpu) {
  unsigned number = 0;
  unsigned id = 0;
  for (auto& instance : gpu.instances) {
    instance.id = ++id;
    unsigned compute_id = 0;
    for (auto& compute : instance.compute) {
      compute.id = compute_id++;
      compute.uuid.text = fmt::format("MIG-{}", number++);
    }
  }
}

LayoutRequest layout_for_test(std::string_view words) {
  auto request = parse_layout(words);
  GANTRY_ASSERT(request.ok());
  return *std::move(request);
}

MigGpu gpu_for_test(std::string_view model, std::string_view layout) {
  auto gpu = known_gpu(model);
  GANTRY_ASSERT(gpu.ok());
  const auto decision = solve(*gpu, layout_for_test(layout));
  const auto* plan = std::get_if<LayoutPlan>(&decision);
  GANTRY_ASSERT(plan != nullptr);
  auto filled = after(*gpu, *plan);
  name_instances_for_test(filled);
  return filled;
}

std::string result_for_test(const MigGpu& gpu, const LayoutDecision& decision) {
  if (const auto* refusal = std::get_if<LayoutRefusal>(&decision))
    return "refused: " + refusal->reason;
  return to_words(current_layout(after(gpu, std::get<LayoutPlan>(decision))));
}

}  // namespace gantry::mig
