// SPDX-License-Identifier: Apache-2.0
#include "node/agent/feature_discovery.hpp"

#include "gpu/probe/snapshot.hpp"
#include "net/kube/client_config.hpp"
#include "node/agent/feature_owners.hpp"
#include "node/agent/node_labels.hpp"
#include "node/agent/signal_wait.hpp"
#include "node/labels/features_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <ctime>
#include <memory>

namespace gantry::agent {
namespace {

constexpr std::string_view kDiscoveryComponent = "features";

class DiscoveryLoop {
 public:
  DiscoveryLoop(FeatureDiscovery discovery, SignalWait signals)
      : d_(std::move(discovery)), signals_(signals) {}

  Status run() {
    while (true) {
      auto ended = one_configuration();
      leave();
      if (!ended.ok()) return ended.error();
      if (*ended != WakeReason::Hangup) return {};
      d_.log.info(kDiscoveryComponent, "reading the configuration again");
      GANTRY_TRY(d_.options, d_.reload());
    }
  }

 private:
  Result<WakeReason> one_configuration() {
    const auto& features = d_.options.features;
    GANTRY_CHECK(find_cluster());
    while (true) {
      GANTRY_CHECK(label());
      if (features.oneshot) return WakeReason::End;
      const auto ended = signals_.wait(features.sleep_interval);
      if (ended != WakeReason::Time) return ended;
    }
  }

  // Only needed for the NodeFeature object.
  Status find_cluster() {
    api_.reset();
    const auto& options = d_.options;
    if (!options.features.use_node_feature_api) return {};
    constexpr std::string_view kOtherwise =
        "--use-node-feature-api=false writes the labels to a file instead";
    if (options.kube.node_name.empty())
      return Error(Errc::Invalid, fmt::format("--node-name (NODE_NAME) is needed; {}", kOtherwise));
    auto access = kube::find_client_config(options.kube.kubeconfig, kube::Caller::Node);
    if (!access.ok())
      return Error(access.error().code(), fmt::format("{}; {}", access.error().text(), kOtherwise));
    api_ = std::make_unique<kube::Api>(*std::move(access));
    object_ = {.node = options.kube.node_name, .name_space = options.kube.name_space};
    auto owners = find_owners(*api_, options.kube.name_space, options.kube.pod_name);
    if (!owners.ok()) {
      d_.log.warning(kDiscoveryComponent, "cannot find the owner of this pod",
                     {{"err", owners.error()}});
    } else {
      object_.owners = *std::move(owners);
    }
    return {};
  }

  Status label() {
    GANTRY_TRY(const auto machine, probe::snapshot(d_.host));
    const auto& wrong = machine.driver.nvml_error;
    if (!wrong.empty() && d_.options.fail_on_init_error)
      return Error(Errc::Unsupported,
                   fmt::format("the driver does not answer: {}; `gantry doctor` says why, "
                               "--fail-on-init-error=false writes the labels without it",
                               wrong));
    if (!wrong.empty())
      d_.log.warning(kDiscoveryComponent, "NVML does not answer", {{"err", wrong}});
    return put_out(node_labels(d_.host, machine, d_.options, started_));
  }

  Status put_out(const labels::Labels& labels) {
    if (api_) {
      GANTRY_CHECK(apply_features(*api_, object_, labels));
      d_.log.info(kDiscoveryComponent, "wrote labels to a NodeFeature",
                  {{"labels", labels.size()}, {"object", labels::node_feature_name(object_.node)}});
      return {};
    }
    const auto& file = d_.options.features.output_file;
    if (file.empty()) {
      fmt::print(d_.out, "{}", labels::to_lines(labels));
      if (std::fflush(d_.out) != 0) return Error::sys(errno, "write").in("standard output");
      return {};
    }
    GANTRY_CHECK(labels::write_features_file(d_.host.outside(file), labels));
    d_.log.info(kDiscoveryComponent, "wrote labels to a file",
                {{"labels", labels.size()}, {"file", file}});
    return {};
  }

  // Removes the file: nothing keeps it up to date any more, so it may become wrong.
  void leave() const {
    const auto& features = d_.options.features;
    const bool stays = api_ || features.oneshot || features.sleep_interval == options::kInfinite ||
                       features.output_file.empty();
    if (stays) return;
    const auto removed = labels::remove_features_file(d_.host.outside(features.output_file));
    if (!removed.ok())
      d_.log.warning(kDiscoveryComponent, "cannot remove the labels", {{"err", removed.error()}});
  }

  FeatureDiscovery d_;
  SignalWait signals_;
  std::int64_t started_ = std::time(nullptr);
  std::unique_ptr<kube::Api> api_;  // nullptr: a file, or standard output
  FeatureObject object_;
};

}  // namespace

Status discover(FeatureDiscovery discovery) {
  GANTRY_TRY(const auto signals, SignalWait::make());
  return DiscoveryLoop(std::move(discovery), signals).run();
}

}  // namespace gantry::agent
