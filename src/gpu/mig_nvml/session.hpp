// SPDX-License-Identifier: Apache-2.0
// Reads and changes MIG through NVML, in the process `gantry-nvml mig`. Each request has a
// deadline: a driver that hangs costs no more than that, and the process is killed. It ends with
// the session.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "base/sys/unique_fd.hpp"
#include "gpu/driver/root.hpp"
#include "gpu/mig_nvml/messages.hpp"

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace gantry::mig_nvml {

struct SessionOptions {
  std::vector<std::string> program;  // instead of gantry-nvml, with its first arguments
  std::string ld_cache = std::string(driver::kLoaderCache);
  driver::DriverLocation driver;  // the location of the driver's files, if the user gave one
  // The first answer takes longer: the driver may have to start the GPUs.
  std::chrono::milliseconds start_deadline{60'000};
  std::chrono::milliseconds read_deadline{20'000};
  std::chrono::milliseconds change_deadline{60'000};
};

class Session {
 public:
  // `host` must outlive it.
  static Result<Session> start(const sys::Host& host, SessionOptions options = {});
  Session(Session&& other) noexcept;
  Session& operator=(Session&&) = delete;
  ~Session();

  Result<MigMachine> read();
  // The text is why the mode is only pending; "" if it is in effect.
  Result<std::string> set_mode(const model::PciAddress& gpu, bool enable);
  // The id of the new instance.
  Result<unsigned> create_gpu_instance(const model::PciAddress& gpu, unsigned profile,
                                       const mig::Placement& place);
  Result<unsigned> create_compute_instance(const model::PciAddress& gpu, unsigned gpu_instance,
                                           unsigned profile, const mig::Placement& place);
  Status destroy_compute_instance(const model::PciAddress& gpu, unsigned gpu_instance,
                                  unsigned compute_instance);
  Status destroy_gpu_instance(const model::PciAddress& gpu, unsigned gpu_instance);

  // Timeout if the process does not answer in time: the driver may still do it. After Timeout and
  // after a crash, which is Internal, every further request fails in the same way.
  Result<MigAnswer> ask(const MigRequest& request);

 private:
  Session(pid_t pid, sys::UniqueFd socket, SessionOptions options);
  Result<std::string> receive_line(std::chrono::milliseconds deadline);
  Error give_up(Error why);

  pid_t pid_ = -1;
  sys::UniqueFd socket_;
  SessionOptions options_;
  bool answered_ = false;
};

}  // namespace gantry::mig_nvml
