// SPDX-License-Identifier: Apache-2.0
#include "base/sys/background_task.hpp"
#include "base/sys/stop_signal.hpp"
#include "net/kube/api.hpp"
#include "net/kube/backoff_internal.hpp"
#include "net/kube/lease.hpp"
#include "net/kube/node_name.hpp"

#include <fmt/format.h>

#include <atomic>

namespace gantry::kube {
namespace {

using std::chrono::milliseconds;

class ServerLease : public LeaseStore {
 public:
  ServerLease(Api& api, const LeaseOptions& options)
      : api_(&api),
        all_(fmt::format("/apis/coordination.k8s.io/v1/namespaces/{}/leases",
                         percent_encode(options.name_space))),
        one_(all_ + "/" + percent_encode(options.name)) {}

  void use(Api& api) { api_ = &api; }
  Result<json::Document> read() override { return api_->get(one_); }
  Result<json::Document> create(const std::string& text) override {
    return api_->create(all_, text);
  }
  Result<json::Document> replace(const std::string& text) override {
    return api_->replace(one_, text);
  }

 private:
  Api* api_;
  std::string all_;
  std::string one_;
};

LeaseOptions with_identity(LeaseOptions options) {
  if (options.identity.empty()) {
    std::random_device random;
    options.identity = fmt::format("{}_{:08x}{:08x}", node_name(""), random(), random());
  }
  return options;
}

}  // namespace

class LeaderElector::Impl {
 public:
  Impl(ClientConfig access, LeaseOptions options, OnChange changed, OnError on_error)
      : options_(with_identity(std::move(options))),
        changed_(std::move(changed)),
        on_error_(std::move(on_error)),
        api_(access, options_.renew / 2, stop_.fd()),
        last_api_(std::move(access), std::chrono::seconds(2)),
        store_(api_, options_),
        candidate_(options_, store_),
        pause_(options_.retry, options_.retry, 0),
        task_({.name = "lease", .cancel = &stop_},
              [this](const std::stop_token&) { return step(); }) {
    task_.start();
  }

  ~Impl() { stop(); }

  void stop() {
    if (stop_.raised()) return;
    task_.stop();
    store_.use(last_api_);  // which the stop signal does not cancel
    const auto released = candidate_.release();
    if (!released.ok() && on_error_) on_error_(released.error());
    tell();
  }

  milliseconds valid_for() const {
    return stop_.raised() ? milliseconds(0) : candidate_.valid_for();
  }
  std::string holder() const { return candidate_.holder(); }
  std::uint64_t term() const { return candidate_.term(); }
  const std::string& identity() const { return options_.identity; }

 private:
  Status step() {
    const auto done = candidate_.step();
    if (!done.ok() && !stop_.raised() && on_error_) on_error_(done.error());
    tell();
    task_.set_period(pause_.next());
    return {};
  }

  void tell() {
    const bool leads = valid_for().count() > 0;
    const auto who = candidate_.holder();
    if (leads == told_leads_ && who == told_who_) return;
    told_leads_ = leads;
    told_who_ = who;
    if (changed_) changed_(leads, who);
  }

  const LeaseOptions options_;
  const OnChange changed_;
  const OnError on_error_;
  sys::StopSignal stop_;
  Api api_;
  Api last_api_;
  ServerLease store_;
  LeaseCandidate candidate_;
  bool told_leads_ = false;
  std::string told_who_;
  Backoff pause_;
  sys::BackgroundTask task_;
};

LeaderElector::LeaderElector(ClientConfig access, LeaseOptions options, OnChange changed,
                             OnError on_error)
    : impl_(std::make_unique<Impl>(std::move(access), std::move(options), std::move(changed),
                                   std::move(on_error))) {}
LeaderElector::~LeaderElector() = default;

void LeaderElector::stop() {
  impl_->stop();
}
milliseconds LeaderElector::valid_for() const {
  return impl_->valid_for();
}
std::string LeaderElector::holder() const {
  return impl_->holder();
}
std::uint64_t LeaderElector::term() const {
  return impl_->term();
}
const std::string& LeaderElector::identity() const {
  return impl_->identity();
}

}  // namespace gantry::kube
