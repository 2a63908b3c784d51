// SPDX-License-Identifier: Apache-2.0
#include "container/oci/request.hpp"

#include "container/oci/device_list.hpp"
#include "container/oci/request_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::oci {
namespace {

using model::RequestSource;

constexpr std::string_view kForcedKind = "runtime.nvidia.com/gpu";

// Divides the entries into names of GPUs and names of CDI specifications. In mode "cdi", names
// without a kind get default-kind, like in NVIDIA's runtime; if that is another kind, its spec
// defines the GPUs. A name of kForcedKind is a GPU's: no specification has it.
Status sort_devices(const std::vector<std::string>& entries, const config::Settings& settings,
                    model::ContainerRequest& request) {
  const auto& runtime = settings.runtime;
  const bool theirs = runtime.mode == "cdi" && runtime.cdi_default_kind != kGpuKind;
  bool forced = false;
  std::vector<std::string_view> names;
  for (const auto& entry : entries) {
    if (!is_qualified(entry)) {
      if (theirs && entry != "none") {
        request.cdi_devices.push_back(fmt::format("{}={}", runtime.cdi_default_kind, entry));
      } else {
        names.push_back(entry);
      }
      continue;
    }
    const auto [kind, name] = split_qualified_name(entry);
    forced = forced || kind == kForcedKind;
    if (kind == kForcedKind) {
      names.push_back(name);
    } else {
      request.cdi_devices.push_back(entry);
    }
  }
  if (forced && !request.cdi_devices.empty()) {
    return Error(Errc::Invalid,
                 fmt::format("{} devices cannot be mixed with other CDI devices ({})", kForcedKind,
                             fmt::join(request.cdi_devices, ", ")));
  }
  // Like in every list, the first `all` or `none` replaces the whole list.
  GANTRY_TRY(request.devices, parse_device_list(names));
  return {};
}

Result<DeviceRequest> find_request(const Container& container, const config::Settings& settings,
                                   Decision& decision) {
  // As NVIDIA's runtime: a mode that was set and is not `cdi` follows no annotations.
  const auto& mode = settings.runtime.mode;
  const bool follows_annotations = mode == "auto" || mode == "cdi";
  auto read = request_from_annotations(container, settings.runtime.cdi_annotation_prefixes);
  if (!follows_annotations) {
    const bool any = !read.ok() || read->source != RequestSource::None;
    if (any)
      decision.reasons.push_back(fmt::format("annotations do not count in mode = \"{}\"", mode));
    read = DeviceRequest{};
  }
  // An image could ask for more than its user does. (In the kubelet's pods only grants count.)
  if (container.has_annotations_of_image) {
    if (!read.ok() || read->source != RequestSource::None)
      decision.reasons.emplace_back(
          "annotations do not count with podman, which takes them from the image; use "
          "`podman run --device`");
    read = DeviceRequest{};
  }
  GANTRY_TRY(auto annotated, std::move(read));
  GANTRY_TRY(auto mounted, request_from_mounts(container));
  GANTRY_TRY(auto environment, request_from_environment(container, settings));
  for (const auto* asked : {&annotated, &mounted, &environment}) {
    decision.asked.insert(decision.asked.end(), asked->words.begin(), asked->words.end());
  }
  if (annotated.source != RequestSource::None) return annotated;
  if (mounted.source != RequestSource::None) {
    if (settings.accept_volume_mounts) return mounted;
    decision.reasons.emplace_back(
        "volume mounts are not accepted (accept-nvidia-visible-devices-as-volume-mounts = false)");
  }
  return environment;
}

}  // namespace

Result<Decision> decide_request(const Container& container, const config::Settings& settings,
                                const RequestLookups& lookups) {
  Decision decision;
  GANTRY_TRY(auto asked, find_request(container, settings, decision));
  apply_policy(asked, container, settings, lookups, decision);
  drop_foreign_kinds(asked, container, settings, decision);
  if (asked.devices.empty()) {
    if (decision.reasons.empty()) decision.reasons.emplace_back("no GPU was requested");
    return decision;
  }
  decision.request.source = asked.source;
  GANTRY_CHECK(sort_devices(asked.devices, settings, decision.request));
  GANTRY_CHECK(read_details(container, settings, decision));
  return decision;
}

}  // namespace gantry::oci
