// SPDX-License-Identifier: Apache-2.0
// The actions of a change on a machine's own driver.
#pragma once

#include "gpu/mig_change/change.hpp"
#include "gpu/mig_nvml/session.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace gantry::mig_change {

class LiveDriver {
 public:
  // `host` must outlive it.
  LiveDriver(const sys::Host& host, mig_nvml::SessionOptions options)
      : host_(host), options_(std::move(options)) {}

  // Starts NVML's process at the first request.
  Result<mig_nvml::MigMachine> read();
  // Ends NVML's process, which has every GPU open. The next request starts another one.
  void close() { session_.reset(); }
  // The processes that NVML sees on the instances of a GPU, as read last.
  const std::vector<mig_nvml::MigProcess>& processes() const { return machine_.processes; }

  // The actions; this object must outlive them. `reset` is called without NVML's process, which has
  // the GPU open.
  using Reset = std::function<Status(const model::PciAddress& gpu)>;
  Actions actions(const Reset& reset = {});

 private:
  Result<mig_nvml::Session*> session();
  Result<mig::MigGpu> read_gpu(const model::PciAddress& gpu);

  const sys::Host& host_;
  mig_nvml::SessionOptions options_;
  std::optional<mig_nvml::Session> session_;
  mig_nvml::MigMachine machine_;
};

}  // namespace gantry::mig_change
