// SPDX-License-Identifier: Apache-2.0
// Watches the node's GPUs through NVML from an event loop. NVML runs in a child process,
// `gantry-nvml watch` (gpu/probe/nvml_program.hpp): if it hangs or crashes there, the parent loses
// only time up to a deadline. The child loads the library of the current driver and releases
// /dev/nvidia* when it exits.
//
//   GANTRY_TRY(auto sensor, NvmlChild::start(host, {}));
//   loop.watch(sensor.fd(), [&] { for (auto& message : sensor.on_readable()) ...; });
//
// One descriptor reports everything: the child's messages, its exit, deadlines, the arrival of a
// driver. No function blocks or takes longer than a few file reads below /proc/driver/nvidia.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "gpu/driver/root.hpp"
#include "gpu/model/inventory.hpp"
#include "gpu/model/readings.hpp"
#include "gpu/probe/nvml_view.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace gantry::nvml_child {

struct NvmlChildOptions {
  std::vector<std::string> program;  // instead of gantry-nvml, with its first arguments
  std::string ld_cache = std::string(driver::kLoaderCache);
  driver::DriverLocation driver;  // the location of the driver's files, if the user gave one
  std::chrono::milliseconds start_deadline{30'000};  // from start to the first view
  std::chrono::milliseconds answer_deadline{10'000};
  std::chrono::milliseconds poll_interval{1'000};  // of /proc/driver/nvidia
  std::chrono::milliseconds initial_backoff{500};  // doubled for each failure in a row
  std::chrono::milliseconds max_backoff{60'000};
  std::optional<int> oom_score_adj;             // of the child, if it is not to inherit ours
  std::chrono::milliseconds event_wait{5'000};  // how long NVML is asked to wait for an event
  std::string released;  // not "": it begins as after release() with this reason
};

enum class ChildState : std::uint8_t {
  NoDriver,  // waits for /proc/driver/nvidia/version
  Starting,  // the child loads NVML
  Running,
  BackingOff,  // it failed; next try later
  Released     // on request: no device node is open
};
std::string_view to_string(ChildState state);

enum class ReadingDepth : std::uint8_t {
  Vital,      // what health needs: a few calls for each GPU
  Full,       // everything, including processes and instances
  Processes,  // only processes, their memory and their utilization in the last two seconds
  Memory  // processes and their memory: takes microseconds. Their utilization takes milliseconds
          // during which the driver answers no other caller
};

// NVML's part of an inventory, sent at the start and when GPUs or MIG instances have changed.
// Complete it with probe::complete_inventory.
struct ViewMessage {
  probe::NvmlView nvml;
};
// After an event of a GPU, vital readings come without a request.
struct ReadingsMessage {
  model::Readings readings;
  ReadingDepth depth = ReadingDepth::Full;
};
struct EventMessage {
  model::GpuEvent event;
};
// Sent on every change. `why` is a sentence if something is wrong.
struct StateMessage {
  ChildState state = ChildState::NoDriver;
  std::string why;
  unsigned failures = 0;  // in a row
};
// The kernel's list of GPUs changed. The child was restarted if it was running.
struct KernelChangedMessage {};
using Message =
    std::variant<ViewMessage, ReadingsMessage, EventMessage, StateMessage, KernelChangedMessage>;

class NvmlChild {
 public:
  // Starts the child at the first on_readable(); fd() is readable at once for it. `host` must
  // outlive it.
  static Result<NvmlChild> start(const sys::Host& host, NvmlChildOptions options);

  NvmlChild(NvmlChild&&) noexcept;
  NvmlChild& operator=(NvmlChild&&) = delete;
  ~NvmlChild();  // ends the child

  int fd() const;  // never changes
  std::vector<Message> on_readable();

  ChildState state() const;
  // The pid of the child; -1 if there is none.
  int child_pid() const;

  // The answer is a ReadingsMessage, or a StateMessage if the child failed. Only one request is
  // open at a time: a second one is answered together with the first, and two different depths
  // become Full.
  void request_readings(ReadingDepth depth);
  void request_view();

  // Ends the child and closes every device node, so that the driver can be unloaded or a GPU reset.
  // Lasts until resume().
  void release(std::string why);
  void resume();

 private:
  struct Impl;
  explicit NvmlChild(std::unique_ptr<Impl> body);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gantry::nvml_child
