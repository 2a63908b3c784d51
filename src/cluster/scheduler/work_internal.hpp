// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cluster/scheduler/apis.hpp"
#include "cluster/scheduler/binder.hpp"
#include "cluster/scheduler/book.hpp"
#include "cluster/scheduler/counters.hpp"
#include "cluster/scheduler/evictor.hpp"
#include "cluster/scheduler/extender.hpp"
#include "cluster/scheduler/feed.hpp"
#include "cluster/scheduler/scheduler.hpp"
#include "cluster/scheduler/why.hpp"
#include "cluster/webhook/admit.hpp"
#include "cluster/webhook/keeper.hpp"
#include "net/http/service.hpp"
#include "net/kube/event.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

namespace gantry::scheduler {

inline constexpr std::size_t kBodyLimit = std::size_t{64} << 20;  // Node objects, without names
inline constexpr std::size_t kMemoryLimit = 2 * kBodyLimit;       // of each port; a pod has 512 MiB

class Scheduler::Work {
 public:
  Work(SchedulerOptions options, Voice voice);
  ~Work() { stop(); }
  Status listen();
  void stop();
  std::uint16_t port() const { return service_->port(); }

 private:
  // ---- leading (lead.cpp)
  void lead_changed(bool leading, const std::string& holder);
  Result<std::chrono::milliseconds> lead() const;
  http::Response bind(const http::Request& request);
  http::Response filter(const http::Request& request);
  // The leader, where that is another one who can be reached and has not asked us himself.
  std::optional<http::Endpoint> other_leader(const http::Request& request) const;
  void make_room(const std::stop_token& stop);
  void take_care(const std::stop_token& stop);
  bool catch_up();  // false: it failed, and is tried again
  std::uint64_t term() const;

  // ---- pages (routes.cpp)
  std::vector<http::Service::Route> routes();
  std::string not_ready() const;
  http::Response ready() const;
  std::string metrics() const;
  http::Response why(const http::Request& request);
  Result<Reasons> reasons(const std::string& name_space, const std::string& pod);

  // ---- webhook (webhook.cpp)
  http::Response admit_pod(const http::Request& request);
  void keep_certificate();
  void serve_securely(const http::ServerIdentity& identity);

  Hands hands();
  EvictorHands evictor_hands();
  void tell_bad_ask(const BadAsk& bad);
  void tell_failed(const BindArgs& args, const Error& why);

  SchedulerOptions options_;
  Voice voice_;
  Counters counters_;
  Book book_;
  Apis apis_;
  kube::EventWriter events_;
  Extender extender_;
  Binder binder_;
  Evictor evictor_;

  // A new leader reads the state anew before its first Binding: for which term that is done.
  std::atomic<std::uint64_t> read_{0};
  std::mutex care_mutex_;
  std::condition_variable_any care_;

  std::unique_ptr<Feed> feed_;
  std::unique_ptr<kube::Elector> elector_;
  std::unique_ptr<http::Service> service_;
  std::mutex secure_mutex_;
  std::unique_ptr<http::Service> secure_;
  std::unique_ptr<webhook::Keeper> certificate_;
  std::jthread caretaker_;
  std::jthread room_maker_;
  bool stopped_ = false;
};

}  // namespace gantry::scheduler
