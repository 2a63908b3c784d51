// SPDX-License-Identifier: Apache-2.0
// An agent for tests of commands that ask one for a GPU.
#pragma once

#include "node/owner_lease/lease_server.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace gantry::owner_lease {

// The part of an agent that owner requests need, on a loop in a thread of its own.
class TestAgent {
 public:
  // The host must outlive it.
  explicit TestAgent(const sys::Host& host)
      : host_(host), loop_(*sys::Loop::make()), ledger_(*ownership::OwnershipStore::open(host)) {
    using namespace std::chrono_literals;
    server_ = std::make_unique<LeaseServer>(
        *loop_, log_,
        LeaseServer::Callbacks{.ledger = [this] { return &ledger_; },
                               .withdraw =
                                   [this](const auto& wanted, const auto& reason) {
                                     note("withdraw: " + reason);
                                     for (const auto& kept :
                                          wanted.parts ? wanted.parts->kept : Uuids{})
                                       note("keeps: " + kept);
                                   },
                               .offer_again = [this](const auto&) { note("offer again"); },
                               .find_usage =
                                   [this](const auto& wanted, auto found) {
                                     for (const auto& name : wanted.yielding)
                                       note("yields: " + name);
                                     loop_->post([this, found] { found(next_usage()); });
                                   }},
        LeaseServer::Timing{.holders_pause = 20ms, .withdraw_pause = 10ms, .withdraw_limit = 2s});
    EXPECT_TRUE(server_->listen(host_.outside(kOwnerSocket)).ok());
    thread_ = std::jthread([this] { (void)loop_->run(); });
  }
  ~TestAgent() {
    loop_->stop();
    thread_.join();
    server_.reset();
  }

  // What find_usage finds, one after the other; the last one again and again.
  void set_usage(std::vector<ownership::GpuUsage> usage) {
    const std::lock_guard lock(mutex_);
    usage_ = std::move(usage);
  }
  std::vector<std::string> notes() {
    const std::lock_guard lock(mutex_);
    return notes_;
  }
  // Waits for what happens after the command has its answer.
  bool wait_for_notes(std::size_t count) {
    for (int i = 0; i < 500 && notes().size() < count; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return notes().size() >= count;
  }

 private:
  using Uuids = std::vector<std::string>;
  void note(std::string text) {
    const std::lock_guard lock(mutex_);
    notes_.push_back(std::move(text));
  }
  ownership::GpuUsage next_usage() {
    const std::lock_guard lock(mutex_);
    auto usage = usage_.front();
    if (usage_.size() > 1) usage_.erase(usage_.begin());
    return usage;
  }

  const sys::Host& host_;
  Log log_{LogForm::Klog, 0, [](std::string_view) {}};
  std::unique_ptr<sys::Loop> loop_;
  ownership::OwnershipStore ledger_;
  std::mutex mutex_;
  std::vector<ownership::GpuUsage> usage_{{.withdrawn = true}};
  std::vector<std::string> notes_;
  std::unique_ptr<LeaseServer> server_;
  std::jthread thread_;
};

}  // namespace gantry::owner_lease
