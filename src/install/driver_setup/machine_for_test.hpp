// SPDX-License-Identifier: Apache-2.0
// A machine with one GPU whose kernel, programs and disk answer like real ones, in a tree of files.
// Its effects count every change, and can fail, end the program or cut the power at any of them.
#pragma once

#include "install/driver_setup/host_files.hpp"
#include "install/driver_setup/install.hpp"
#include "install/driver_setup/remove.hpp"
#include "support/tree.hpp"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::driver_setup {

inline constexpr const char* kOldDriver = "460.56";
inline constexpr const char* kNewDriver = "580.159.04";
inline constexpr const char* kSetupKernel = "6.1.0-21-amd64";
inline constexpr const char* kOtherKernel = "6.1.0-22-amd64";

// Thrown by an effect in place of kill -9: nothing after it runs.
struct KilledForTest {};

enum class Fault : std::uint8_t {
  None,
  Fail,  // with `err`
  KillAfter,
  KillHalfway  // part of what it writes is there
};

struct Script {
  int fault_at = 0;  // the number of an effect, from 1
  Fault fault = Fault::None;
  int err = 28;  // ENOSPC
  int count = 0;
  std::vector<std::string> log;  // "save PATH", "load nvidia", "run make ..."
  std::function<Status(const std::string& entry)> rule;  // an error: the effect fails with it
};

class SetupMachine {
 public:
  SetupMachine();

  test::Tree& tree() { return tree_; }
  sys::Host host() const { return tree_.host(); }
  Script script;

  // An archive below /root; returns its path.
  std::string archive(const std::string& version);
  // What `install` would be given for it. GPUs of the machine work with all of them.
  preflight::DriverRequest request(const std::string& version);

  Result<SetupReport> install(const preflight::DriverRequest& request);
  Result<SetupReport> install(const std::string& version) { return install(request(version)); }
  Result<SetupReport> load();
  Result<SetupReport> build(const std::string& kernel);
  Result<SetupReport> remove(const RemoveOptions& options = {});

  std::string loaded() const;                // the version; "" if no driver is loaded
  std::string current() const;               // where DIR/current leads
  std::vector<std::string> modules() const;  // that are loaded
  bool has_journal() const;
  // Installed, recorded, loaded and verified, with no work left over.
  void expect_installed(const std::string& version);

  // Everything that a boot loses: modules, /dev, /run, settings of the kernel.
  void reboot();
  // The same, and what was written and not synced is empty.
  void lose_power();
  // All files and links below / with their content, without /proc, /sys and /dev.
  std::map<std::string, std::string> files() const;

  SetupMachine& holder(unsigned pid, std::string_view name, std::string_view cgroup = "0::/\n");
  SetupMachine& unit(const std::string& name, bool active);  // of systemd
  SetupMachine& kernel(const std::string& release);          // installs its headers
  // The version that the distribution's repository has.
  void add_packages(const std::string& version) { package_version_ = version; }
  std::set<std::string> packages;               // that are installed
  std::vector<std::string> brings_modules;      // of the kernel's own: modprobe nvidia loads them
  std::map<std::string, std::string> rpm_keys;  // keys of rpm's by their packages' names

  // What facts would say; changed by tests before they install.
  std::function<void(preflight::MachineFacts&)> adjust_facts;
  std::map<std::string, std::string> server;  // archives by URL
  std::string smi_table;                      // what nvidia-smi prints; "": one line
  bool smi_fails = false;
  bool has_persistence_daemon = false;  // in archives
  bool processes_obey = true;           // they end at SIGTERM
  int reads_of_facts = 0;
  int told_agents = 0;
  SetupOptions options();

 private:
  friend class TestEffects;
  preflight::MachineFacts facts();
  void write_proc();

  test::Tree tree_;
  struct Module {
    std::string name, version;
    bool open = false;
  };
  std::vector<Module> loaded_;
  std::set<std::string> unsynced_;
  std::map<std::string, bool> units_;
  std::string package_version_;
};

// Fails the test with the error's text.
void expect_ok(const Result<SetupReport>& report);

}  // namespace gantry::driver_setup
