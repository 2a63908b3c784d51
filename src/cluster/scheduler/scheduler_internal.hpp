// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/sys/background_task.hpp"
#include "cluster/admission/admission.hpp"
#include "cluster/scheduler/api_pool.hpp"
#include "cluster/scheduler/binder.hpp"
#include "cluster/scheduler/cluster_cache.hpp"
#include "cluster/scheduler/cluster_watcher.hpp"
#include "cluster/scheduler/counters.hpp"
#include "cluster/scheduler/evictor.hpp"
#include "cluster/scheduler/explain_pod.hpp"
#include "cluster/scheduler/extender.hpp"
#include "cluster/scheduler/scheduler.hpp"
#include "cluster/webhook/rotator.hpp"
#include "net/http/server.hpp"
#include "net/kube/event.hpp"

#include <atomic>
#include <mutex>

namespace gantry::scheduler {

inline constexpr std::size_t kBodyLimit = std::size_t{64} << 20;  // Node objects, without names
inline constexpr std::size_t kMemoryLimit = 2 * kBodyLimit;       // of each port; a pod has 512 MiB
inline constexpr std::size_t kMemoryPerAddress = kMemoryLimit / 4 * 3;

class Scheduler::Impl {
 public:
  Impl(SchedulerOptions options, Log log);
  ~Impl() { stop(); }
  Status listen();
  void stop();
  std::uint16_t port() const { return server_->port(); }

 private:
  // ---- leader election (leader.cpp)
  void lead_changed(bool leading, const std::string& holder);
  Result<std::chrono::milliseconds> lead() const;
  http::Response bind(const http::Request& request);
  http::Response filter(const http::Request& request);
  // The leader, if it is another reachable replica and has not forwarded this request to us.
  std::optional<http::Endpoint> other_leader(const http::Request& request) const;
  void preempt_lower_priority();
  Status resync();
  std::uint64_t term() const;

  // ---- pages (routes.cpp)
  std::vector<http::Route> routes();
  std::string not_ready() const;
  http::Response ready();
  std::string metrics() const;
  http::Response why(const http::Request& request);
  Result<PodReasons> reasons(const std::string& name_space, const std::string& pod);

  // ---- webhook (webhook.cpp)
  http::Response admit_pod(const http::Request& request);
  void start_certificate_rotation();
  void serve_tls(const http::ServerIdentity& identity);
  bool webhook_listens();  // true if there is no webhook

  BindApi api_calls();
  EvictApi evict_api();
  void report_invalid_request(const InvalidRequest& bad);
  void report_bind_failure(const ExtenderBindingArgs& args, const Error& why);

  SchedulerOptions options_;
  Log log_;
  SchedulerCounters counters_;
  ClusterCache cache_;
  ApiPool apis_;
  kube::EventRecorder events_;
  Extender extender_;
  Binder binder_;
  Evictor evictor_;

  // A new leader reads the state again before its first Binding: the term for which that is done.
  std::atomic<std::uint64_t> read_{0};
  sys::BackgroundTask reconciler_;  // before the elector, which wakes it until its own end
  sys::BackgroundTask preemptor_;

  std::unique_ptr<ClusterWatcher> feed_;
  std::unique_ptr<kube::LeaderElector> elector_;
  std::unique_ptr<http::Server> server_;
  std::mutex tls_mutex_;
  std::unique_ptr<http::Server> tls_server_;
  std::unique_ptr<webhook::CertificateRotator> certificate_;
  bool stopped_ = false;
};

}  // namespace gantry::scheduler
