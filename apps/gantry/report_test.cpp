// SPDX-License-Identifier: Apache-2.0
#include "base/sys/child.hpp"
#include "support/machine.hpp"
#include "support/run_cli.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::cli {
namespace {

using test::run_cli;
using ::testing::HasSubstr;
using ::testing::Not;

std::string tar(const std::string& archive, const std::string& option,
                const std::string& member = "") {
  std::vector<std::string> command{"tar", option, archive};
  if (!member.empty()) command.push_back("gantry-report/" + member);
  const auto run = sys::run_command(command, std::chrono::seconds(20));
  return run.ok() ? run->output : run.error().text();
}

TEST(ReportCommand, WritesOneArchiveWithEverything) {
  test::Machine machine("mismatch");
  machine.file("/etc/docker/daemon.json", "{\"runtimes\":{}}");
  test::Tree out;
  const auto archive = out.path("report.tar");
  const auto run = run_cli({"gantry", "report", "--root", machine.root(), "-o", archive});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("--mask replaces them"));
  const auto list = tar(archive, "-tf");
  for (const char* name :
       {"MANIFEST.txt", "versions.txt", "inventory.json", "doctor.txt", "doctor.json",
        "kernel-log.txt", "files/etc/docker/daemon.json", "files/proc/driver/nvidia/version"}) {
    EXPECT_THAT(list, HasSubstr(std::string("gantry-report/") + name + "\n"));
  }
  EXPECT_THAT(tar(archive, "-xOf", "doctor.txt"), HasSubstr("module.mismatch"));
  EXPECT_THAT(tar(archive, "-xOf", "versions.txt"), HasSubstr("driver module: 580.159.04"));
}

TEST(ReportCommand, MasksIdentitiesInEveryFile) {
  test::Machine machine("t4x4");
  test::Tree out;
  const auto archive = out.path("report.tar");
  ASSERT_EQ(run_cli({"gantry", "report", "--mask", "--root", machine.root(), "-o", archive}).status,
            0);
  const auto all = tar(archive, "-xOf");
  const auto host = machine.host();
  const auto gpus = host.list("/proc/driver/nvidia/gpus");
  ASSERT_TRUE(gpus.ok());
  const auto text = *host.read("/proc/driver/nvidia/gpus/" + gpus->front() + "/information");
  const auto uuid = text.substr(text.find("GPU-"), 40);
  ASSERT_THAT(uuid, ::testing::StartsWith("GPU-"));
  EXPECT_THAT(all, Not(HasSubstr(uuid)));
  EXPECT_THAT(all, HasSubstr("GPU-00000000-0000-0000-0000-0000000000"));
  EXPECT_THAT(all, Not(HasSubstr(*host.read_value("/proc/sys/kernel/hostname"))));
  EXPECT_THAT(all, HasSubstr(gpus->front())) << "a PCI address does not identify a machine";
}

TEST(ReportCommand, SaysThatItCannotWrite) {
  const test::Machine machine("h200");
  const auto run = run_cli({"gantry", "report", "--root", machine.root(), "-o", "/proc/x/y.tar"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("gantry report: writing the report"));
}

}  // namespace
}  // namespace gantry::cli
