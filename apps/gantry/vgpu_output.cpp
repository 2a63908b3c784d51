// SPDX-License-Identifier: Apache-2.0
// What `gantry vgpu` prints.
#include "base/json/writer.hpp"
#include "gantry/table.hpp"
#include "gantry/vgpu_commands.hpp"
#include "vm/vgpu/holders.hpp"

#include <fmt/format.h>

namespace gantry::cli {
namespace {

std::string known_type(const vgpu::Vgpu& one) {
  return one.type.empty() ? fmt::format("number {}", one.type_id) : one.type;
}

std::string functions_of(const vgpu::VgpuGpu& gpu) {
  return gpu.total_vfs == 0 ? "-" : fmt::format("{} of {}", gpu.enabled_vfs, gpu.total_vfs);
}

void write_vgpu(json::Writer& out, const vgpu::Vgpu& one) {
  out.object([&] {
    out.member("id", one.id());
    out.member("gpu", one.gpu.sysfs());
    out.member("parent", one.parent.sysfs());
    if (!one.uuid.empty()) out.member("uuid", one.uuid);
    out.member("type", one.type);
    out.member("typeId", one.type_id);
    out.member("iommuGroup", one.iommu_group);
    out.member("node", vgpu::vfio_node(one));
    out.array("holders", one.holders);
  });
}

void write_type(json::Writer& out, const vgpu::VgpuType& type) {
  out.object([&] {
    out.member("type", type.key);
    out.member("id", type.id);
    out.member("name", type.name);
    out.member("framebufferMiB", type.framebuffer_mib);
    out.member("available", type.available);
    out.member("maxInstances", type.max_instances);
  });
}

void write_vgpu_gpu(json::Writer& out, const vgpu::VgpuGpu& gpu) {
  out.object([&] {
    out.member("index", gpu.index);
    out.member("address", gpu.address.sysfs());
    out.member("uuid", gpu.uuid.text);
    out.member("deviceFilter", gpu.device_filter());
    out.member("framework", vgpu::to_string(gpu.framework));
    out.member("problem", gpu.problem);
    out.member("totalVfs", gpu.total_vfs);
    out.member("enabledVfs", gpu.enabled_vfs);
    out.array("types", gpu.types, [&](const vgpu::VgpuType& type) { write_type(out, type); });
    out.array("vgpus", gpu.vgpus, [&](const vgpu::Vgpu& one) { write_vgpu(out, one); });
  });
}

}  // namespace

std::string vgpu_table(const VgpuView& view, std::size_t columns) {
  Table gpus({"GPU", "ADDRESS", "VFS", "VGPUS", "FRAMEWORK"});
  Table vgpus({"GPU", "VGPU", "TYPE", "PARENT", "NODE", "PROCESS"});
  for (const auto& gpu : view.gpus) {
    const bool none = gpu.framework == vgpu::Framework::None;
    gpus.add({fmt::to_string(gpu.index), gpu.address.sysfs(), functions_of(gpu),
              fmt::to_string(gpu.vgpus.size()),
              none         ? fmt::format("none: {}", gpu.problem)
              : gpu.silent ? fmt::format("unknown: {}", gpu.problem)
                           : std::string(vgpu::describe(gpu.framework))});
    for (const auto& one : gpu.vgpus) {
      const auto node = vgpu::vfio_node(one);
      vgpus.add({fmt::to_string(gpu.index), one.id(), known_type(one), one.parent.sysfs(),
                 node.empty() ? "-" : node,
                 one.holders.empty() ? "-" : fmt::format("{}", fmt::join(one.holders, ","))});
    }
  }
  return vgpus.empty() ? gpus.text(columns)
                       : fmt::format("{}\n{}", gpus.text(columns), vgpus.text(columns));
}

std::string vgpu_types_table(const std::vector<const vgpu::VgpuGpu*>& gpus, std::size_t columns) {
  Table table({"GPU", "TYPE", "ID", "FRAMEBUFFER", "AVAILABLE", "MOST", "NAME"});
  for (const auto* gpu : gpus) {
    for (const auto& type : gpu->types) {
      table.add({fmt::to_string(gpu->index), type.key, type.id,
                 fmt::format("{} MiB", type.framebuffer_mib), fmt::to_string(type.available),
                 type.max_instances == 0 ? "?" : fmt::to_string(type.max_instances), type.name});
    }
  }
  return table.empty() ? "" : table.text(columns);
}

std::string vgpu_json(const std::vector<const vgpu::VgpuGpu*>& gpus, const VgpuView& view) {
  json::Writer out(json::Layout::Indented);
  out.object([&] {
    out.member("schema", kFirstSchema);
    out.array("gpus", gpus, [&](const vgpu::VgpuGpu* gpu) { write_vgpu_gpu(out, *gpu); });
    out.key("interrupted");
    if (view.interrupted) {
      out.object([&] {
        out.member("command", view.interrupted->command);
        out.array("steps", view.interrupted->steps);
      });
    } else {
      out.value(nullptr);
    }
  });
  return std::move(out).text();
}

std::string vgpu_change_json(const vgpu::ChangeReport& report, bool dry_run) {
  json::Writer out(json::Layout::Indented);
  out.object([&] {
    out.member("schema", kFirstSchema);
    out.member("dryRun", dry_run);
    out.array("steps", report.steps,
              [&](const vgpu::Step& step) { out.value(vgpu::describe(step)); });
    out.array("vgpus", report.vgpus, [&](const vgpu::VgpuSpec& spec) {
      out.object([&] {
        out.member("id", spec.id());
        out.member("gpu", spec.gpu.sysfs());
        out.member("parent", spec.parent.sysfs());
        out.member("type", spec.type);
      });
    });
    out.array("notes", report.notes);
    out.array("failed", report.failed, [&](const auto& one) {
      out.object([&] {
        out.member("gpu", one.first.sysfs());
        out.member("error", one.second.text());
      });
    });
  });
  return std::move(out).text();
}

}  // namespace gantry::cli
