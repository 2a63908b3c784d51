// SPDX-License-Identifier: Apache-2.0
// The changing part of a simulated machine, written in place in the library files of its tree.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "base/sys/unique_fd.hpp"
#include "sim/machine/image.hpp"
#include "sim/machine/tree.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace gantry::sim {

class StateFile {
 public:
  // Waits for other writers for a time, then returns Busy. Denied if the files belong to another
  // user.
  static Result<StateFile> open(const std::string& root,
                                std::chrono::milliseconds patience = std::chrono::seconds(5));
  // Opens it for reading: needs no lock and no write permission. Do not call commit().
  static Result<StateFile> look(const std::string& root);

  StateFile(StateFile&& other) noexcept;
  StateFile& operator=(StateFile&&) = delete;
  ~StateFile();

  const sys::Host& host() const { return host_; }
  const gantry_sim_machine& machine() const { return working_->machine; }
  gantry_sim_state& state() { return working_->state; }  // a copy until commit()
  const gantry_sim_state& state() const { return working_->state; }
  const gantry_sim_state& baseline() const { return *baseline_; }  // the state after create

  // Publishes state() to running processes: odd sequence, new content, even sequence, wake-up. A
  // process killed in between leaves one file odd and the other whole; the next open() repairs it.
  void commit();

 private:
  struct Mapping {
    void* address = nullptr;
    std::size_t size = 0;
    gantry_sim_image* image = nullptr;
  };
  explicit StateFile(sys::Host host) : host_(std::move(host)) {}
  Status lock(const std::string& path, std::chrono::milliseconds patience);
  Status load(const TreeMarker& marker, int flags);
  Status map(const std::string& path, int flags);
  Status copy_whole();
  Status read_baseline();
  static void publish(gantry_sim_state& to, const gantry_sim_state& from);

  sys::Host host_;
  sys::UniqueFd lock_;
  std::vector<Mapping> files_;
  Image working_;
  std::unique_ptr<gantry_sim_state> baseline_;
};

inline constexpr std::string_view kBackupPath =
    "/.gantry-sim.d";  // files that injections moved away

}  // namespace gantry::sim
