// SPDX-License-Identifier: Apache-2.0
// The node's eyes on its GPUs, seen from an event loop. NVML lives in a child process: it may hang,
// crash or lie there; here it costs a deadline. The child is a new run of our own program, so that
// it inherits neither memory nor threads, loads the library of the driver that is there now, and
// releases /dev/nvidia* when it ends.
//
//   NvmlChild sensor(host, {.program = {"/proc/self/exe", std::string(kChildCommand)}});
//   loop.watch(sensor.fd(), [&] { for (auto& message : sensor.on_readable()) ...; });
//
// One descriptor for everything: the child's messages, its end, deadlines, waiting for a driver.
// Nothing here blocks or takes longer than some file reads below /proc/driver/nvidia.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "gpu/driver/root.hpp"
#include "gpu/model/inventory.hpp"
#include "gpu/model/readings.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace gantry::nvml_child {

// The first argument with which the program becomes the child: child_main(argc, argv).
inline constexpr std::string_view kChildCommand = "sensor-child";

struct NvmlChildOptions {
  std::vector<std::string> program;  // what to run as the child, with the first arguments
  std::string ld_cache = std::string(driver::kLoaderCache);
  driver::DriverLocation driver;  // where the driver's files are, when that was said
  std::chrono::milliseconds start_deadline{30'000};  // from start to the first view
  std::chrono::milliseconds answer_deadline{10'000};
  std::chrono::milliseconds poll_interval{1'000};  // at /proc/driver/nvidia
  std::chrono::milliseconds initial_backoff{500};  // doubled for each failure in a row
  std::chrono::milliseconds max_backoff{60'000};
  std::optional<int> oom_score_adj;             // of the child, where ours is not for it
  std::chrono::milliseconds event_wait{5'000};  // how long NVML is asked to wait for an event
};

enum class ChildState : std::uint8_t {
  NoDriver,  // waits for /proc/driver/nvidia/version
  Starting,  // the child loads NVML
  Running,
  BackingOff,  // it failed; next try later
  Released     // on request: nothing of the driver is held
};
std::string_view to_string(ChildState state);

enum class ReadingDepth : std::uint8_t {
  Vital,      // what health needs: a few calls for each GPU
  Full,       // everything, processes and instances too
  Processes,  // those alone, what they hold and how busy they were in the last two seconds
  Memory      // processes and what they hold: microseconds, where their time takes milliseconds in
              // which nobody else gets an answer from the driver
};

// NVML's part of an inventory: at the start, and when GPUs or MIG instances have changed. Make it
// whole with probe::complete_inventory.
struct ViewMessage {
  model::Inventory nvml;
};
// An event of a GPU is followed by vital ones that nobody has asked for.
struct ReadingsMessage {
  model::Readings readings;
  ReadingDepth depth = ReadingDepth::Full;
};
struct EventMessage {
  model::GpuEvent event;
};
// On every change. `why` is a sentence where it is not good news.
struct StateMessage {
  ChildState state = ChildState::NoDriver;
  std::string why;
  unsigned failures = 0;  // in a row
};
// GPUs as the kernel lists them came or went; the child has been started anew where it ran.
struct KernelChangedMessage {};
using Message =
    std::variant<ViewMessage, ReadingsMessage, EventMessage, StateMessage, KernelChangedMessage>;

class NvmlChild {
 public:
  // Starts the child at the first on_readable(), which fd() asks for at once. `host` must outlive
  // it.
  static Result<NvmlChild> start(const sys::Host& host, NvmlChildOptions options);

  NvmlChild(NvmlChild&&) noexcept;
  NvmlChild& operator=(NvmlChild&&) = delete;
  ~NvmlChild();  // ends the child

  int fd() const;  // the same for the whole life
  std::vector<Message> on_readable();

  ChildState state() const;
  // Of the child; -1 when there is none.
  int child_pid() const;

  // Answered by a ReadingsMessage, or by a StateMessage when the child failed. One question at a
  // time: while one is open, a second one changes at most its depth and is answered with it; two
  // different ones become a full one.
  void request_readings(ReadingDepth depth);
  void request_view();

  // Ends the child and lets go of every device node, so that a driver can be unloaded or a GPU
  // reset; until resume().
  void release(std::string why);
  void resume();

 private:
  struct Impl;
  explicit NvmlChild(std::unique_ptr<Impl> body);
  std::unique_ptr<Impl> impl_;
};

// The child's main(): `PROGRAM sensor-child ROOT LD_CACHE EVENT_WAIT_MS DRIVER_ROOT LIBRARIES...`,
// its socket is descriptor 3. Returns the exit status.
int child_main(int argc, char** argv);

}  // namespace gantry::nvml_child
