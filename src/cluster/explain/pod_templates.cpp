// SPDX-License-Identifier: Apache-2.0
#include "cluster/explain/pod_templates.hpp"

#include "base/json/writer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace gantry::explain {
namespace {

constexpr std::size_t kMaxKeyShown = 64;

bool is_pod_spec(json::Value spec) {
  return spec["containers"].is(json::Kind::Array) &&
         spec["containers"].element(0).is(json::Kind::Object);
}

class Finder {
 public:
  explicit Finder(std::size_t most) : most_(most) {}

  // The depth is limited by json::kDepthLimit.
  void look(json::Value value) {
    if (found_.size() == most_) return;
    if (value.is(json::Kind::Array)) {
      std::size_t index = 0;
      for (const auto item : value) look_below(item, fmt::format("[{}]", index++));
      return;
    }
    if (!value.is(json::Kind::Object) || take(value)) return;
    for (const auto member : value) {
      const auto key = member.key();
      if (key != "status" && key != "metadata")
        look_below(member, (path_.empty() ? "" : ".") + key.substr(0, kMaxKeyShown));
    }
  }

  std::vector<PodTemplate> found() && { return std::move(found_); }

 private:
  void look_below(json::Value value, std::string step) {
    path_.push_back(std::move(step));
    look(value);
    path_.pop_back();
  }

  // Returns true if the object is a pod.
  bool take(json::Value value) {
    if (is_pod_spec(value["spec"])) return add(std::string(value.raw()));
    json::Writer pod;
    if (is_pod_spec(value)) {  // a spec without a template around it, as in an InferenceService
      pod.object([&] { pod.raw_member("spec", value.raw()); });
      return add(pod.text());
    }
    // A step of an Argo Workflow has one container.
    if (!value["container"]["image"].is(json::Kind::String)) return false;
    pod.object([&] {
      pod.object("spec", [&] {
        pod.array("containers", [&] { pod.raw(value["container"].raw()); });
        for (const auto* name : {"initContainers", "volumes", "nodeSelector", "tolerations"}) {
          if (value[name]) pod.raw_member(name, value[name].raw());
        }
      });
    });
    return add(pod.text());
  }

  bool add(std::string text) {
    if (auto pod = json::Document::parse(std::move(text)); pod.ok())
      found_.push_back({fmt::format("{}", fmt::join(path_, "")), *std::move(pod)});
    return true;
  }

  std::size_t most_;
  std::vector<std::string> path_;  // "spec", ".template", "[0]"; joined only if a pod is there
  std::vector<PodTemplate> found_;
};

}  // namespace

std::vector<PodTemplate> pod_templates(json::Value object, std::size_t most) {
  if (object["kind"].string() == "CustomResourceDefinition") return {};
  Finder finder(most);
  finder.look(object);
  return std::move(finder).found();
}

}  // namespace gantry::explain
