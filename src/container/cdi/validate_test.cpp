// SPDX-License-Identifier: Apache-2.0
#include "container/cdi/validate.hpp"

#include "container/cdi/names.hpp"

#include <gmock/gmock.h>

namespace gantry::cdi {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Spec good() {
  return {.version = "0.5.0",
          .kind = "nvidia.com/gpu",
          .devices = {{.name = "0", .edits = {.device_nodes = {{.path = "/dev/nvidia0"}}}}}};
}

template <class Change>
std::vector<std::string> after(Change change) {
  auto spec = good();
  change(spec, spec.devices[0].edits);
  return validate(spec);
}

TEST(Validate, LetsAGoodOnePass) {
  EXPECT_THAT(validate(good()), IsEmpty());
}

TEST(Validate, SaysWhatIsWrongAndWhere) {
  const auto one = [](auto text) { return ElementsAre(HasSubstr(text)); };
  EXPECT_THAT(after([](Spec& s, Edits&) { s.version = ""; }), one("no cdiVersion"));
  EXPECT_THAT(after([](Spec& s, Edits&) { s.version = "0.5"; }), one("must be written 0.5.0"));
  EXPECT_THAT(after([](Spec& s, Edits&) { s.version = "0.9.0"; }), one("not a version of CDI"));
  EXPECT_THAT(after([](Spec& s, Edits&) { s.version = "0.3.0"; }),
              one("starts with a digit needs 0.5.0"));
  EXPECT_THAT(after([](Spec&, Edits& e) { e.additional_gids = {4}; }),
              one("cdiVersion 0.5.0 is too low: additionalGids needs 0.7.0"));
  EXPECT_THAT(after([](Spec& s, Edits&) { s.kind = "gpu"; }), one("VENDOR/CLASS"));
  EXPECT_THAT(after([](Spec& s, Edits&) { s.kind = "1.com/gpu"; }), one("start with a letter"));
  EXPECT_THAT(after([](Spec& s, Edits&) { s.kind = "nvidia.com/g"; }), one("at least two letters"));
  EXPECT_THAT(after([](Spec& s, Edits&) { s.devices.clear(); }), one("there is no device"));
  EXPECT_THAT(after([](Spec& s, Edits&) { s.devices.push_back(s.devices[0]); }),
              one("device \"0\" is defined twice"));
  EXPECT_THAT(after([](Spec&, Edits& e) { e = {}; }), one("has no edits"));
  EXPECT_THAT(after([](Spec& s, Edits&) { s.devices[0].name = "a/b"; }),
              one("letters, digits and _-.:"));
  EXPECT_THAT(after([](Spec&, Edits& e) { e.env = {"=x"}; }), one("must be NAME=VALUE"));
  EXPECT_THAT(after([](Spec&, Edits& e) { e.env = {"x"}; }), one("must be NAME=VALUE"));
  EXPECT_THAT(after([](Spec&, Edits& e) { e.device_nodes[0].type = "x"; }), one("b, c, u or p"));
  EXPECT_THAT(after([](Spec&, Edits& e) { e.device_nodes[0].permissions = "rwx"; }),
              one("r, w and m"));
  EXPECT_THAT(after([](Spec&, Edits& e) { e.device_nodes[0].path = ""; }), one("without path"));
  EXPECT_THAT(after([](Spec&, Edits& e) { e.mounts = {{"", "/b", {}, ""}}; }), one("no hostPath"));
  EXPECT_THAT(after([](Spec&, Edits& e) {
                e.mounts = {{"/a", "", {}, ""}};
              }),
              one("no containerPath"));
  EXPECT_THAT(after([](Spec&, Edits& e) { e.hooks = {{.hook_name = "x", .path = "/h"}}; }),
              one("one of prestart, createRuntime"));
  EXPECT_THAT(after([](Spec&, Edits& e) { e.hooks = {{.hook_name = "prestart"}}; }),
              one("no path"));
  EXPECT_THAT(after([](Spec& s, Edits& e) {
                s.version = "1.1.0";
                e.net_devices = {{"a", "b"}, {"a", "c"}};
              }),
              one("is defined twice"));
  EXPECT_THAT(after([](Spec& s, Edits& e) {
                s.version = "1.1.0";
                e.intel_rdt = IntelRdt{.clos_id = "a/b"};
              }),
              one("file name"));
}

TEST(Names, AreQualifiedOrSaidWhyNot) {
  EXPECT_EQ(*parse_qualified("nvidia.com/gpu=0:1"), (QualifiedName{"nvidia.com/gpu", "0:1"}));
  for (const char* name :
       {"", "0", "gpu=0", "nvidia.com/gpu", "nvidia.com/gpu=", "/gpu=0", "nvidia.com/=0",
        "nvidia.com/gpu=-a", "nvidia.com/gpu=a b", "a.b/cc=d=e"}) {
    EXPECT_FALSE(is_qualified(name)) << name;
  }
}

}  // namespace
}  // namespace gantry::cdi
