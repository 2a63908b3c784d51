// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "base/sys/unique_fd.hpp"

#include <memory>
#include <utility>

namespace gantry::driver_setup {

// The lock of NVIDIA's driver containers, held while Gantry changes the driver: a container that
// starts meanwhile ends, and the kubelet starts it again later. The file is removed with the lock.
// The host must outlive it.
class ContainerLock {
 public:
  // Busy, with the process that has it, if a driver container is at work.
  static Result<std::unique_ptr<ContainerLock>> take(const sys::Host& host);
  ContainerLock(const ContainerLock&) = delete;
  ContainerLock& operator=(const ContainerLock&) = delete;
  ~ContainerLock();

 private:
  ContainerLock(const sys::Host& host, sys::UniqueFd file) : host_(host), file_(std::move(file)) {}
  const sys::Host& host_;
  sys::UniqueFd file_;
};

}  // namespace gantry::driver_setup
