// SPDX-License-Identifier: Apache-2.0
#include "node/agent/owner_requests.hpp"

#include "base/sys/kernel.hpp"
#include "node/owner_lease/local_usage.hpp"

#include <algorithm>
#include <utility>

namespace gantry::agent {
namespace {

using namespace std::chrono_literals;
using owner_lease::LeaseServer;

// Until a killed NVML process has closed its descriptors.
constexpr auto kNvmlEnds = 200ms;

std::vector<std::string> kept_of(const LeaseServer::LeaseTarget& wanted) {
  return wanted.parts ? wanted.parts->kept : std::vector<std::string>{};
}

}  // namespace

OwnerRequests::OwnerRequests(sys::Loop& loop, const sys::Host& host, const Log& log,
                             OwnershipFilter& ownership, MachineWatcher& machine,
                             AgentCallbacks callbacks)
    : loop_(loop),
      host_(host),
      ownership_(ownership),
      machine_(machine),
      callbacks_(std::move(callbacks)),
      server_(loop, log, server_callbacks()) {}

Status OwnerRequests::listen() {
  const std::string socket(owner_lease::kOwnerSocket);
  GANTRY_CHECK(sys::real_kernel()->make_directory(host_, socket.substr(0, socket.rfind('/'))));
  return server_.listen(host_.outside(socket));
}

LeaseServer::Callbacks OwnerRequests::server_callbacks() {
  return {.ledger = [this] { return ownership_.ledger(); },
          .withdraw =
              [this](const LeaseTarget& wanted, const std::string& reason) {
                returning_.erase(wanted.gpu);
                ownership_.withhold(wanted.gpu, reason, kept_of(wanted));
                callbacks_.offer();
              },
          .offer_again =
              [this](const model::PciAddress& gpu) {
                holders_.erase(gpu);
                offer_again(gpu);
              },
          .find_usage =
              [this](const LeaseTarget& wanted, LeaseServer::UsageFound found) {
                find_usage(wanted, std::move(found));
              }};
}

// The kubelet first: while a pod has the GPU, our own NVML process may stay.
void OwnerRequests::find_usage(const LeaseTarget& wanted, LeaseServer::UsageFound found) {
  const std::weak_ptr<bool> alive = alive_;
  if (!callbacks_.withdrawn(wanted)) {
    return loop_.post([alive, found = std::move(found)] {
      if (alive.lock()) found(ownership::GpuUsage{});
    });
  }
  callbacks_.ask_kubelet([this, alive, wanted, found = std::move(found)](const Status& asked) {
    if (!alive.lock()) return;
    if (!asked.ok()) return found(Error(asked.error()).in("asking the kubelet who has the GPU"));
    auto pods = callbacks_.pods(wanted);
    if (!pods.empty())
      return found(ownership::GpuUsage{.withdrawn = true, .holders = std::move(pods)});
    find_processes(wanted, found);
  });
}

void OwnerRequests::find_processes(const LeaseTarget& wanted, LeaseServer::UsageFound found) {
  const auto& gpu = wanted.gpu;
  // The command ended while we asked the kubelet: nothing would start our NVML process again.
  if (!ownership_.is_withheld(gpu)) return found(ownership::GpuUsage{});
  if (holders_.contains(gpu)) return look_at_known_holders(wanted, std::move(found));
  let_go_of(gpu);
  timers_[gpu] = loop_.after(kNvmlEnds, [this, wanted, found = std::move(found)] {
    look_for_holders(wanted, [this, gpu = wanted.gpu, found](auto holders) {
      found_processes(gpu, std::move(holders), found);
    });
  });
}

// While a holder that we know stays, our own NVML process need not end for each look.
void OwnerRequests::look_at_known_holders(const LeaseTarget& wanted,
                                          LeaseServer::UsageFound found) {
  look_for_holders(wanted, [this, wanted, found = std::move(found)](auto holders) {
    const auto known = holders_[wanted.gpu];
    holders_.erase(wanted.gpu);
    if (!holders.ok()) return find_processes(wanted, found);
    std::erase_if(*holders, [&](const std::string& holder) {
      return std::find(known.begin(), known.end(), holder) == known.end();
    });
    if (holders->empty()) return find_processes(wanted, found);
    found_processes(wanted.gpu, std::move(holders), found);
  });
}

void OwnerRequests::look_for_holders(const LeaseTarget& wanted, HoldersFound then) {
  const std::weak_ptr<bool> alive = alive_;
  worker_.give([this, alive, wanted, then = std::move(then)] {
    auto holders =
        owner_lease::processes_and_shares(host_, wanted.gpu, wanted.yielding, wanted.parts);
    loop_.post([alive, then, holders = std::move(holders)] {
      if (alive.lock()) then(holders);
    });
  });
}

void OwnerRequests::found_processes(const model::PciAddress& gpu,
                                    Result<std::vector<std::string>> holders,
                                    const LeaseServer::UsageFound& found) {
  // An agent in a pod may not see the processes of the host. The command does, and looks itself.
  if (!holders.ok() && holders.error().code() == Errc::Denied) holders = std::vector<std::string>{};
  if (!holders.ok() || !holders->empty()) use_again(gpu);  // watch the GPUs while we wait
  if (!holders.ok()) return found(std::move(holders).error());
  if (!holders->empty() && ownership_.is_withheld(gpu)) holders_[gpu] = *holders;
  found(ownership::GpuUsage{.withdrawn = true, .holders = *std::move(holders)});
}

void OwnerRequests::let_go_of(const model::PciAddress& gpu) {
  machine_.release(gpu.sysfs(), "a command changes the owner of a GPU");
}

bool OwnerRequests::use_again(const model::PciAddress& gpu) {
  return machine_.resume(gpu.sysfs());
}

// The driver may have given it another minor number: the files that containers start from are made
// again before it is offered.
void OwnerRequests::offer_again(const model::PciAddress& gpu) {
  if (use_again(gpu)) {
    returning_.insert(gpu);
    ownership_.keep_withheld(gpu, "the agent reads again which device node it has");
  } else if (!returning_.contains(gpu)) {
    ownership_.let_go(gpu);
  }
  callbacks_.offer();
}

void OwnerRequests::machine_known() {
  for (const auto& gpu : std::exchange(returning_, {})) ownership_.let_go(gpu);
}

}  // namespace gantry::agent
