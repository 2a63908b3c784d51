// SPDX-License-Identifier: Apache-2.0
#include "base/json/writer.hpp"
#include "node/labels/labels.hpp"

#include <fmt/format.h>

#include <utility>

namespace gantry::labels {
namespace {

void write_owner(json::Writer& out, const NodeFeatureOwner& owner) {
  out.object([&] {
    out.member("apiVersion", owner.api_version);
    out.member("kind", owner.kind);
    out.member("name", owner.name);
    out.member("uid", owner.uid);
    if (owner.controller) out.member("controller", true);
  });
}

void write_metadata(json::Writer& out, const NodeFeatureOptions& options) {
  out.object("metadata", [&] {
    out.member("name", node_feature_name(options.node));
    out.member("namespace", options.name_space);
    out.object("labels", [&] { out.member("nfd.node.kubernetes.io/node-name", options.node); });
    if (options.owners.empty()) return;
    out.array("ownerReferences", options.owners,
              [&](const NodeFeatureOwner& owner) { write_owner(out, owner); });
  });
}

}  // namespace

std::string node_feature_name(std::string_view node) {
  return fmt::format("nvidia-features-for-{}", node);
}

std::string to_node_feature(const Labels& labels, const NodeFeatureOptions& options) {
  json::Writer out;
  out.object([&] {
    out.member("apiVersion", "nfd.k8s-sigs.io/v1alpha1");
    out.member("kind", "NodeFeature");
    write_metadata(out, options);
    out.object("spec", [&] {
      out.object("features", [&] {
        out.object("flags", [] {});
        out.object("attributes", [] {});
        out.object("instances", [] {});
      });
      out.object("labels", labels);
    });
  });
  return std::move(out).text();
}

}  // namespace gantry::labels
