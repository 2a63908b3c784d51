// SPDX-License-Identifier: Apache-2.0
// Decides which GPUs the plugin may offer. It holds back a GPU that has another owner in the
// ownership ledger or whose owner is being changed, and a GPU that a pod holds in another way or
// under another name than the new offer would use.
#pragma once

#include "base/log/log.hpp"
#include "base/sys/host.hpp"
#include "gpu/model/pci_address.hpp"
#include "gpu/ownership/ownership_store.hpp"
#include "gpu/ownership/start_lock.hpp"
#include "node/resources/resources.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gantry::agent {

class OwnershipFilter {
 public:
  using Clock = std::chrono::steady_clock;

  OwnershipFilter(const sys::Host& host, const Log& log) : host_(host), log_(log) {}

  // Returns false while another process has the ledger open: try again later. Until then no change
  // of an owner begins (start_lock.hpp).
  bool open();

  struct HeldDevice {
    std::string pod;       // "default/train"
    std::string resource;  // under which the kubelet counts the device
    std::string device;    // the UUID of the GPU or the MIG instance
  };
  struct GpuUsage {
    // True if the kubelet reported this just now. Only then may a GPU change its use: a pod that
    // got the GPU just before it was withdrawn may have no process on it for minutes.
    bool certain = false;
    std::map<std::string, std::vector<HeldDevice>> pods;  // by UUID of the GPU
    std::map<std::string, std::vector<std::uint32_t>> pids;
  };
  // Keeps a GPU, but for the MIG instances in `kept`, out of all further offers, with this reason,
  // until let_go().
  void withhold(const model::PciAddress& gpu, std::string reason,
                std::vector<std::string> kept = {});
  // For another reason, with the same kept instances.
  void keep_withheld(const model::PciAddress& gpu, std::string reason);
  void let_go(const model::PciAddress& gpu);
  bool is_withheld(const model::PciAddress& gpu) const { return withheld_.contains(gpu); }
  // The GPU is not offered, for long enough that the kubelet knows it.
  bool withdrawn(const model::PciAddress& gpu, Clock::time_point now = Clock::now()) const;
  // nullptr while another process has it open.
  ownership::OwnershipStore* ledger() { return ledger_ ? &*ledger_ : nullptr; }
  // The last open() failed because another process has it open.
  bool another_has_ledger() const { return !ledger_ && another_has_ledger_; }

  // Removes from the offer what must not be offered, and adds the reason to its notes. Returns when
  // to look again if a GPU was held back that may become free later.
  std::optional<std::chrono::milliseconds> settle(resources::Offer& offer, const GpuUsage& in_use,
                                                  Clock::time_point now = Clock::now());

 private:
  // Why a GPU is not offered; empty text: it is.
  struct HoldBack {
    std::string reason;
    bool may_end = true;                 // without a request to us: look again
    std::vector<std::string> kept = {};  // MIG instances that are offered all the same
  };
  void keep_changes_from_beginning();
  std::chrono::milliseconds next_look(const GpuUsage& in_use, Clock::time_point now) const;
  HoldBack reason_by_ledger(const resources::GpuUse& gpu, const GpuUsage& in_use,
                            Clock::time_point now);
  std::string reason_by_former(const resources::GpuUse& gpu,
                               const Result<ownership::OwnershipState>& former) const;
  HoldBack why_not(const resources::GpuUse& gpu, const GpuUsage& in_use,
                   const Result<ownership::OwnershipState>& former, Clock::time_point now);

  const sys::Host& host_;
  const Log& log_;
  std::optional<ownership::OwnershipStore> ledger_;
  std::optional<ownership::StartLock> start_lock_;  // while another process has the ledger
  std::string reported_;                            // why the ledger is not open
  bool another_has_ledger_ = false;
  // GPUs that are not in the last offer, and since when.
  std::map<model::PciAddress, Clock::time_point> withdrawn_;
  struct Withheld {
    std::string reason;
    std::vector<std::string> kept;
  };
  std::map<model::PciAddress, Withheld> withheld_;
};

}  // namespace gantry::agent
