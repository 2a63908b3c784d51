// SPDX-License-Identifier: Apache-2.0
// Whatever a request says, the answer is JSON that names what was asked about.
#include "base/json/document.hpp"
#include "cluster/scheduler/extender_wire.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gantry;  // NOLINT: one function
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto args = scheduler::read_args(text); args.ok()) {
    GANTRY_ASSERT(!args->has_nodes || args->items.size() == args->names.size());
    const std::string reason = "\"why\"";
    scheduler::ExtenderFilterResult answer;
    for (std::size_t i = 0; i < args->names.size(); ++i)
      answer.verdicts.push_back(
          {.reason = i % 2 == 0 ? nullptr : &reason, .resolvable = i % 3 == 0});
    // Node objects come back as they came, checked for their shape only.
    auto names_only = *args;
    names_only.has_nodes = false;
    const auto written = json::Document::parse(scheduler::write_filter(names_only, answer));
    if (written.ok()) GANTRY_ASSERT((*written)["NodeNames"].size() == (args->names.size() + 1) / 2);
  }
  (void)scheduler::read_bind_args(text).ok();
  if (const auto args = scheduler::read_preempt_args(text); args.ok()) {
    const auto written = json::Document::parse(scheduler::write_preempt(args->nodes));
    GANTRY_ASSERT(!written.ok() ||
                  (*written)["NodeNameToMetaVictims"].size() == args->nodes.size());
  }
  return 0;
}
