// SPDX-License-Identifier: Apache-2.0
// nvidia-driver-installer on simulated machines, without a kernel: src/install/google_installer
// tests what it does.
#include "support/machine.hpp"
#include "support/run_cli.hpp"

#include <stdlib.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace gantry::cli {
namespace {

using test::Machine;
using test::run_cli;
using testing::AllOf;
using testing::HasSubstr;

class InstallerVariables {
 public:
  using Variable = std::pair<const char*, std::string>;
  InstallerVariables(std::initializer_list<Variable> variables) : variables_(variables) {
    for (const auto& [name, value] : variables_) ::setenv(name, value.c_str(), 1);
  }
  ~InstallerVariables() {
    for (const auto& variable : variables_) ::unsetenv(variable.first);
  }
  InstallerVariables(const InstallerVariables&) = delete;
  InstallerVariables& operator=(const InstallerVariables&) = delete;

 private:
  std::vector<Variable> variables_;
};

TEST(NvidiaDriverInstaller, PlansWhatTheVariablesSay) {
  const Machine machine("t4x4");
  const InstallerVariables set{{"ROOT_MOUNT_DIR", machine.root()},
                               {"NVIDIA_DRIVER_VERSION", "580.159.04"},
                               {"NVIDIA_DRIVER_SHA256", std::string(64, 'a')},
                               {"NVIDIA_INSTALL_DIR_HOST", "/home/kubernetes/bin/nvidia"}};
  const auto run = run_cli({"nvidia-driver-installer", "--dry-run"});
  EXPECT_THAT(run.out, AllOf(HasSubstr("Checking cached version\n"
                                       "Cache file /usr/local/nvidia/.cache not found.\n"),
                             HasSubstr("would unpack the archive of 580.159.04"),
                             HasSubstr("would write /home/kubernetes/bin/nvidia/.cache")));
  EXPECT_FALSE(machine.host().exists("/home/kubernetes/bin/nvidia"));
}

TEST(NvidiaDriverInstaller, FlagsGoBeforeVariables) {
  const Machine machine("t4x4");
  const InstallerVariables set{{"ROOT_MOUNT_DIR", "/nowhere"},
                               {"NVIDIA_DRIVER_VERSION", "460.56"},
                               {"NVIDIA_DRIVER_SHA256", std::string(64, 'a')}};
  const auto run = run_cli({"nvidia-driver-installer", "install", "--dry-run", "--version",
                            "580.159.04", "--host-root", machine.root()});
  EXPECT_THAT(run.out, AllOf(HasSubstr("would unpack the archive of 580.159.04"),
                             HasSubstr("would write /var/lib/nvidia/.cache")));
}

TEST(NvidiaDriverInstaller, OnATreeOfFilesIsRefused) {
  const Machine machine("t4x4");
  const InstallerVariables set{{"ROOT_MOUNT_DIR", machine.root()},
                               {"NVIDIA_DRIVER_VERSION", "580.159.04"},
                               {"NVIDIA_DRIVER_SHA256", std::string(64, 'a')}};
  const auto run = run_cli({"nvidia-driver-installer"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("is a tree of files, not the running machine"));
}

TEST(NvidiaDriverInstaller, NamesTheVariableThatIsWrong) {
  const InstallerVariables set{{"NVIDIA_DRIVER_SHA256", "beef"}};
  const auto run = run_cli({"nvidia-driver-installer", "--dry-run"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("NVIDIA_DRIVER_SHA256"));
}

}  // namespace
}  // namespace gantry::cli
