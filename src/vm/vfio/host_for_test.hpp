// SPDX-License-Identifier: Apache-2.0
// A host with two equal GPUs, whose sysfs answers like a kernel, and effects that fail where a test
// says.
#pragma once

#include "support/tree.hpp"
#include "vm/vfio/bind.hpp"
#include "vm/vfio/effects.hpp"
#include "vm/vfio/machine_state.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::vfio::test_host {

inline constexpr const char* kGpu = "0000:3b:00.0";  // with sound (.1), group 12, minor 0
inline constexpr const char* kSound = "0000:3b:00.1";
inline constexpr const char* kTwin = "0000:5e:00.0";    // same ids, group 15, minor 1
inline constexpr const char* kBridge = "0000:3a:00.0";  // above the first one, in its group

model::PciAddress at(std::string_view text);

struct TestFunction {
  std::string address;
  std::string device = "0x2236";
  std::string class_code = "0x030200";
  std::string driver = "nvidia";
  int group = 12;
  std::string vendor = "0x10de";
};

class TestHost {
 public:
  TestHost();

  test::Tree& tree() { return tree_; }
  sys::Host host() const { return tree_.host(); }
  const std::string& root() const { return tree_.root(); }

  TestHost& add(const TestFunction& function);
  TestHost& file(const std::string& path, std::string_view text);
  // /proc of a process that has the node open.
  TestHost& process(int pid, std::string_view name, std::string_view node,
                    std::string_view cgroup = "0::/user.slice\n");
  TestHost& remove_process(int pid);

  std::string driver(const std::string& address) const;
  std::string driver_override(const std::string& address) const;
  // The state of all functions, to compare before and after: "0000:3b:00.0=nvidia/(null)".
  std::vector<std::string> bindings() const;
  bool has_journal() const;

 private:
  test::Tree tree_;
};

// Thrown by an effect in place of kill -9: nothing after it runs, and the lock goes with the
// process.
struct SimulatedKill {};

// Counts all effects that change something. At `number` (from 1) it does what `fault` says.
enum class Fault { None, Fail, KillBefore, KillAfter };

struct Script {
  int fault_at = 0;
  Fault fault = Fault::None;
  int count = 0;
  std::vector<std::string> log;                          // "write PATH TEXT", "save PATH", ...
  std::function<Status(const std::string& entry)> rule;  // an error: the effect fails with it
};

// The host must outlive the effects; so must the script.
Effects scripted_effects(const sys::Host& host, Script& script);

// bind, release and recover of kGpu with scripted effects.
Result<BindResult> bind_gpu(const TestHost& machine, Script& script, BindOptions options = {});
Result<BindResult> release_gpu(const TestHost& machine, Script& script, BindOptions options = {});
Result<BindResult> recover_gpu(const TestHost& machine, Script& script);
bool is_bound(const TestHost& machine);  // all functions of kGpu

}  // namespace gantry::vfio::test_host
