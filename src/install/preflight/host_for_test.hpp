// SPDX-License-Identifier: Apache-2.0
// A simulated machine on which a driver can be installed, to be made unfit by a test: a Debian with
// one T4, kernel headers and a compiler, and no driver.
#pragma once

#include "install/preflight/judge.hpp"
#include "support/machine.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::preflight {

inline constexpr std::string_view kTestKernel = "6.1.0-21-amd64";
inline constexpr const char* kTestGpu = "0000:3b:00.0";

class TestHost {
 public:
  // `machine`: one of the simulated machines; "" for the bare one. `gpus`: cards of the bare one.
  explicit TestHost(std::string_view machine = "", std::vector<std::string> cards = {"t4"});

  test::Machine& tree() { return *machine_; }
  FactSources sources;
  DriverRequest request;                  // 580.159.04 as a local archive
  std::vector<std::uint32_t> unreadable;  // processes that facts() shall not look into

  TestHost& file(std::string_view path, std::string_view content);
  TestHost& link(std::string_view path, std::string_view target);
  TestHost& remove(std::string_view path);
  TestHost& changed_at(std::string_view path, std::int64_t seconds);  // sets its mtime
  TestHost& gpu_driver(std::string_view driver);                      // of the first GPU
  TestHost& gpu_file(std::string_view name, std::string_view content);
  // A driver that is loaded, with one process that has its node open, and idle modules.
  TestHost& loaded(std::string_view version = "550.90.07");
  TestHost& process(unsigned pid, std::string_view name, std::string_view cgroup = "0::/\n");
  TestHost& opens(unsigned pid, std::string_view node);
  TestHost& holds_container_lock(unsigned pid, std::string_view name);

  MachineFacts facts();
  std::vector<Finding> judge();

 private:
  void make_fit();
  std::unique_ptr<test::Machine> machine_;
};

// nullptr if there is none with this code.
const Finding* find(const std::vector<Finding>& findings, std::string_view code);

struct FindingCase {
  std::string_view code;
  Severity severity;
  std::string_view says;  // a part of its sentence, cause or remedy
  void (*change)(TestHost&);
};
// Checks the finding of each case and that the bare machine has none of the cases' codes.
void check_cases(const std::vector<FindingCase>& cases);

std::vector<FindingCase> request_cases();
std::vector<FindingCase> gpu_cases();
std::vector<FindingCase> kernel_cases();
std::vector<FindingCase> user_cases();
std::vector<FindingCase> machine_cases();

}  // namespace gantry::preflight
