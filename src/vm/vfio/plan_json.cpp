// SPDX-License-Identifier: Apache-2.0
#include "vm/vfio/plan_json.hpp"

#include <fmt/format.h>

namespace gantry::vfio {
namespace {

void write_function(json::Writer& out, const PlannedFunction& function) {
  out.object([&] {
    out.member("address", function.address.sysfs());
    out.member("gpu", function.target.sysfs());
    out.member("kind", pci::to_string(function.kind));
    out.member("id", fmt::format("{:04x}:{:04x}", function.id.vendor, function.id.device));
    out.member("serial", function.id.serial);
    out.member("iommuGroup", function.group);
    out.member("driver", function.driver);
    out.member("driverOverride", function.override_);
    out.member("vfioDriver", function.to_driver);
    out.member("done", function.done());
  });
}

void write_finding(json::Writer& out, const Finding& finding) {
  out.object([&] {
    out.member("severity", to_string(finding.severity));
    out.member("code", to_string(finding.code));
    out.member("address", finding.address.sysfs());
    out.member("text", finding.text);
    out.member("remedy", finding.remedy);
  });
}

}  // namespace

void write_holder(json::Writer& out, const Holder& holder) {
  out.object([&] {
    out.member("pid", holder.pid);
    out.member("command", holder.command);
    out.member("node", holder.node);
    out.member("pod", holder.pod);
    out.member("unit", holder.unit);
  });
}

void write_plan(json::Writer& out, const Plan& plan) {
  out.object([&] {
    out.member("schema", 1);
    out.array("gpus", plan.targets, [&](const auto& target) { out.value(target.sysfs()); });
    out.member("possible", !plan.blocked() && !plan.in_use());
    out.member("bound", plan.complete());
    out.array("functions", plan.functions, [&](const auto& one) { write_function(out, one); });
    out.array("iommuGroups", plan.groups);
    out.array("findings", plan.findings, [&](const auto& one) { write_finding(out, one); });
    out.array("holders", plan.holders, [&](const auto& one) { write_holder(out, one); });
    out.array("services", plan.services);
  });
}

}  // namespace gantry::vfio
