// SPDX-License-Identifier: Apache-2.0
#include "container/cdi/spec_text.hpp"

#include <gmock/gmock.h>

namespace gantry::cdi {
namespace {

using testing::HasSubstr;
using testing::Not;

Spec two_gpus() {
  Spec spec{.kind = "nvidia.com/gpu"};
  spec.devices.push_back({.name = "0", .edits = {.device_nodes = {{.path = "/dev/nvidia0"}}}});
  spec.devices.push_back({.name = "GPU-1", .edits = {.device_nodes = {{.path = "/dev/nvidia1"}}}});
  spec.edits.env = {"NVIDIA_VISIBLE_DEVICES=void"};
  spec.edits.mounts = {
      {"/var/lib/gantry/driver/current/lib64", "/usr/local/nvidia/lib64", {"ro", "rbind"}, ""}};
  return spec;
}

TEST(Write, YamlIsWhatPeopleKnow) {
  EXPECT_EQ(to_text(two_gpus(), Format::Yaml), R"(---
cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices:
  - name: "0"
    containerEdits:
      deviceNodes:
        - path: /dev/nvidia0
  - name: GPU-1
    containerEdits:
      deviceNodes:
        - path: /dev/nvidia1
containerEdits:
  env:
    - NVIDIA_VISIBLE_DEVICES=void
  mounts:
    - hostPath: /var/lib/gantry/driver/current/lib64
      containerPath: /usr/local/nvidia/lib64
      options:
        - ro
        - rbind
)");
}

TEST(Write, JsonSaysTheSame) {
  Spec spec{.version = "0.7.0", .kind = "acme.org/nic"};
  spec.devices.push_back({.name = "a", .edits = {.additional_gids = {44}}});
  EXPECT_EQ(to_text(spec, Format::Json), R"({
  "cdiVersion": "0.7.0",
  "kind": "acme.org/nic",
  "devices": [
    {
      "name": "a",
      "containerEdits": {
        "additionalGids": [
          44
        ]
      }
    }
  ]
}
)");
}

TEST(Write, QuotesWhatAReaderCouldMisunderstand) {
  Spec spec{.kind = "acme.org/xx"};
  for (const char* name :
       {"0:1", "1e3", "yes", "Null", "a: b", "", "#c", "tab\there", "say \"hi\""}) {
    spec.devices.push_back({.name = name});
  }
  const auto text = to_text(spec, Format::Yaml);
  for (const char* line :
       {"name: \"0:1\"", "name: \"1e3\"", "name: \"yes\"", "name: \"Null\"", "name: \"a: b\"",
        "name: \"\"", "name: \"#c\"", "name: \"tab\\u0009here\"", "name: \"say \\\"hi\\\"\""}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(Write, LeavesOutWhatIsNotThere) {
  EXPECT_THAT(to_text(two_gpus(), Format::Yaml), Not(HasSubstr("hooks")));
  EXPECT_THAT(to_text(Spec{.kind = "a.b/cc"}, Format::Yaml), HasSubstr("devices: []\n"));
}

TEST(Write, EmptyEditsOfADeviceAreStillWritten) {
  Spec spec{.kind = "a.b/cc", .devices = {{.name = "none"}}};
  EXPECT_THAT(to_text(spec, Format::Yaml), HasSubstr("containerEdits: {}"));
}

TEST(Write, TheNameDecidesTheFormat) {
  EXPECT_EQ(format_of("/etc/cdi/x.json"), Format::Json);
  EXPECT_EQ(format_of("/etc/cdi/x.yaml"), Format::Yaml);
  EXPECT_EQ(format_of("-"), Format::Yaml);
}

}  // namespace
}  // namespace gantry::cdi
