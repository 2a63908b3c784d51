// SPDX-License-Identifier: Apache-2.0
#include "cluster/explain/spec_faults.hpp"

#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "cluster/explain/node_rejection.hpp"
#include "cluster/explain/pod_steps.hpp"
#include "cluster/podspec/quantity.hpp"
#include "cluster/podspec/request.hpp"
#include "cluster/podspec/resource_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

namespace gantry::explain {
namespace {

using podspec::ResourceClass;

constexpr std::uint64_t kMaxPlausibleGpus = 1024;  // of one container: more than any machine has
constexpr std::size_t kMaxShown = 64;              // bytes of a name or a value in a sentence

std::string shorten(std::string_view text) {
  return printable(text.size() <= kMaxShown ? text : text.substr(0, kMaxShown));
}

std::string written(json::Value value) {
  return shorten(value.string().value_or(std::string(value.raw().substr(0, kMaxShown))));
}

// Calls `visit` with each container and each entry of its limits and requests, until it returns a
// step.
template <class Visit>
std::optional<Step> first_in_resources(json::Value pod, const Visit& visit) {
  for (const auto* list : {"containers", "initContainers"}) {
    for (const auto container : pod["spec"][list]) {
      for (const auto* where : {"limits", "requests"}) {
        for (const auto entry : container["resources"][where]) {
          if (auto step = visit(container, entry)) return step;
        }
      }
    }
  }
  return std::nullopt;
}

struct QuantityFault {
  std::string what;  // "is below zero"
  std::string remedy;
};

QuantityFault fault_of(const std::string& name, const std::string& text) {
  if (text.starts_with('-'))
    return {"is below zero", fmt::format("write {}: 1; for no GPU, remove the line", name)};
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  if (digits)
    return {"is more than any machine has",
            fmt::format("write how many GPUs this pod needs: {}: 1; for more GPUs than one machine "
                        "has, write several pods",
                        name)};
  return {"is not a number", fmt::format("write a whole number in digits: {}: 1", name)};
}

Step fraction_step(std::string text) {
  return {.id = "spec.fraction",
          .what = "Whole numbers of GPUs",
          .verdict = StepStatus::Failed,
          .read = std::move(text),
          .cause =
              "Kubernetes counts extended resources in whole numbers: you cannot ask for half a "
              "GPU this way",
          .remedy =
              "where GPUs are shared, write nvidia.com/gpu: 1 with nvidia.com/gpumem-percentage: "
              "50 and nvidia.com/gpucores: 50, or aliyun.com/gpu-mem with a number of GiB; "
              "otherwise ask for 1 of a shared resource (nvidia.com/gpu.shared), or for a MIG "
              "profile (nvidia.com/mig-1g.10gb)"};
}

std::optional<Step> quantity_step(const std::string& name, json::Value value) {
  const auto text = written(value);
  const auto quantity = podspec::read_quantity(value);
  if (quantity.ok() && !quantity->whole()) return fraction_step(text);
  // parse_request has a sentence about a suffix.
  if (quantity.ok() && (quantity->value <= kMaxPlausibleGpus || quantity->binary))
    return std::nullopt;
  const auto fault = fault_of(shorten(name), quantity.ok() ? "1" : text);
  return Step{.id = "spec.quantity",
              .what = "Whole numbers of GPUs",
              .verdict = StepStatus::Failed,
              .read = fmt::format("{}: {}", shorten(name), text),
              .cause = fmt::format("{}: {} {}", shorten(name), text, fault.what),
              .remedy = fault.remedy};
}

Step misspelt_step(std::string read, const std::string& name, const std::string& meant,
                   const std::string& value) {
  Step step{.id = "spec.resource-name",
            .what = "GPU nodes offer this resource",
            .verdict = StepStatus::Failed,
            .read = std::move(read)};
  if (meant.empty()) {
    step.cause = fmt::format("{} is an annotation of the pod, not a resource", shorten(name));
    step.remedy =
        fmt::format("write it into metadata.annotations: {{{}: \"{}\"}}", shorten(name), value);
    return step;
  }
  step.cause = fmt::format("no node offers {}; did you mean {}?", shorten(name), meant);
  step.remedy = fmt::format("write {}: {}", meant, value);
  return step;
}

Step unknown_step(std::string read, const std::string& name, const std::string& meant) {
  Step step{.id = "spec.resource-name",
            .what = "GPU nodes offer this resource",
            .verdict = StepStatus::Warning,
            .read = std::move(read),
            .cause = fmt::format("Gantry does not know {}: a node offers it only if a device "
                                 "plugin was configured so; did you mean {}?",
                                 shorten(name), meant),
            .remedy = fmt::format("write {}", meant)};
  if (is_plain_word(name))
    step.remedy += fmt::format(
        "; this shows whether a node offers it: kubectl describe nodes | "
        "grep {}",
        name);
  return step;
}

// Objects whose keys are names of labels or of other things than resources.
constexpr std::array<std::string_view, 12> kNoResources{
    "metadata", "status",      "nodeSelector", "affinity",    "tolerations",   "selector",
    "labels",   "annotations", "overhead",     "matchLabels", "labelSelector", "volumeAttributes"};

struct MisplacedResource {
  std::string path;  // ".containers[0].limits", built from its end
  std::string name;
  std::string value;
};

bool is_gpu_entry(json::Value member) {
  if (member.is(json::Kind::Object) || member.is(json::Kind::Array)) return false;
  const auto name = member.key();
  if (!contains(name, "/")) return false;
  const auto kind = podspec::classify_resource(name).kind;
  return kind == ResourceClass::Known || kind == ResourceClass::Misspelt;
}

// Where the walk is: inside a container, its "resources" are the right place.
enum class Place : std::uint8_t { Anywhere, Container, Resources };

Place place_below(Place place, std::string_view key) {
  if (place == Place::Container && key == "resources") return Place::Resources;
  return Place::Anywhere;
}

bool may_be_misplaced_below(Place place, std::string_view key) {
  if (place == Place::Resources && (key == "limits" || key == "requests")) return false;
  return std::find(kNoResources.begin(), kNoResources.end(), key) == kNoResources.end();
}

std::optional<MisplacedResource> find_misplaced(json::Value value, Place place);

std::optional<MisplacedResource> find_in_list(json::Value list, Place place) {
  std::size_t index = 0;
  for (const auto item : list) {
    if (auto found = find_misplaced(item, place)) {
      found->path.insert(0, fmt::format("[{}]", index));
      return found;
    }
    ++index;
  }
  return std::nullopt;
}

// The depth is limited by json::kDepthLimit.
std::optional<MisplacedResource> find_misplaced(json::Value value, Place place) {
  if (!value.is(json::Kind::Object)) return std::nullopt;
  for (const auto member : value) {
    if (is_gpu_entry(member)) return MisplacedResource{"", member.key(), written(member)};
    const auto key = member.key();
    if (!may_be_misplaced_below(place, key)) continue;
    const bool containers = key == "containers" || key == "initContainers";
    auto found = member.is(json::Kind::Array)
                     ? find_in_list(member, containers ? Place::Container : Place::Anywhere)
                     : find_misplaced(member, place_below(place, key));
    if (!found) continue;
    found->path.insert(0, "." + shorten(key));
    return found;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Step> quantity_fault(json::Value pod) {
  return first_in_resources(pod, [](json::Value, json::Value entry) -> std::optional<Step> {
    const auto name = entry.key();
    return counts_devices(name) ? quantity_step(name, entry) : std::nullopt;
  });
}

std::optional<Step> name_fault(json::Value pod) {
  std::optional<Step> unknown;
  const auto check = [&](json::Value container, json::Value entry) -> std::optional<Step> {
    const auto name = entry.key();
    const auto found = podspec::classify_resource(name);
    auto read = fmt::format("container {}: {}: {}", shorten(container["name"].string_or_empty()),
                            shorten(name), written(entry));
    if (found.kind == ResourceClass::Misspelt)
      return misspelt_step(std::move(read), name, found.meant, written(entry));
    if (found.kind == ResourceClass::Unknown && !unknown)
      unknown = unknown_step(std::move(read), name, found.meant);
    return std::nullopt;
  };
  auto misspelt = first_in_resources(pod, check);
  return misspelt ? misspelt : unknown;
}

std::optional<Step> misplaced_fault(json::Value object) {
  const auto found = find_misplaced(object, Place::Anywhere);
  if (!found) return std::nullopt;
  const auto meant = podspec::classify_resource(found->name).meant;
  const auto path = found->path.empty() ? "the top of the object" : found->path.substr(1);
  return Step{
      .id = "spec.misplaced",
      .what = "Limits are at their place",
      .verdict = StepStatus::Failed,
      .read = fmt::format("{}: {} at {}", shorten(found->name), found->value, path),
      .cause = fmt::format(
          "a GPU is asked for below resources.limits of a container; Kubernetes rejects or ignores "
          "{} at {}",
          shorten(found->name), path),
      .remedy = fmt::format("write at the container: resources: {{limits: {{{}: {}}}}}",
                            meant.empty() ? shorten(found->name) : meant, found->value)};
}

std::optional<Step> runtime_fault(json::Value pod) {
  const auto name = pod["spec"]["runtimeClassName"].string_or_empty();
  if (!name.starts_with("kata")) return std::nullopt;
  for (const auto& [resource, count] : requested_devices(pod)) {
    const bool virtual_machine =
        resource == "nvidia.com/pgpu" || resource == "nvidia.com/vgpu" || contains(resource, "_");
    if (virtual_machine || count == 0) continue;
    return Step{
        .id = "spec.runtime-class",
        .what = "Its runtime can use the GPU",
        .verdict = StepStatus::Failed,
        .read = fmt::format("runtimeClassName: {} with {}: {}", shorten(name), resource, count),
        .cause = fmt::format(
            "{} starts the pod in a virtual machine. {} gives a container device nodes and driver "
            "files of the host, which do not work there",
            shorten(name), resource),
        .remedy =
            "remove runtimeClassName, or ask for a GPU that is passed to the virtual machine, on a "
            "node whose GPUs are bound to vfio-pci: nvidia.com/pgpu: 1"};
  }
  return std::nullopt;
}

}  // namespace gantry::explain
