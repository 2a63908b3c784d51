// SPDX-License-Identifier: Apache-2.0
// Every config.json that we accept can be edited; the result is accepted and requests nothing more.
#include "container/oci/apply.hpp"
#include "container/oci/request.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gantry;
  const auto config = json::Document::parse(std::string(reinterpret_cast<const char*>(data), size),
                                            json::Encoding::Any);
  if (!config.ok()) return 0;
  const auto container = oci::parse_container(*config);
  if (!container.ok()) return 0;
  config::Settings settings;
  settings.accept_volume_mounts = true;
  (void)oci::decide_request(*container, settings, {}).ok();

  const model::ContainerEdits edits{
      .nodes = {{.path = "/dev/nvidia0", .host_path = "/t/dev/nvidia0", .major = 195, .minor = 0}},
      .mounts = {{.host_path = "/h", .container_path = "/usr/local/nvidia/lib64"}},
      .env = {"NVIDIA_VISIBLE_DEVICES=void"},
      .additional_gids = {44}};
  const auto edited = oci::apply(*config, edits);
  if (!edited.ok()) return 0;  // "process": [] and the like
  const auto again = json::Document::parse(*edited, json::Encoding::Any);
  GANTRY_ASSERT(again.ok());
  const auto changed = oci::parse_container(*again);
  GANTRY_ASSERT(changed.ok());
  GANTRY_ASSERT(changed->variable("NVIDIA_VISIBLE_DEVICES") == "void");
  return 0;
}
