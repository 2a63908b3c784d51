// SPDX-License-Identifier: Apache-2.0
// Compares the simulated h200 with the real one, file by file (tests/golden/h200).
#include "base/core/text.hpp"
#include "base/sys/child.hpp"
#include "support/machine.hpp"
#include "support/paths.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

namespace gantry::sim {
namespace {

namespace fs = std::filesystem;

std::string golden() {
  return test::source_dir() + "/tests/golden/h200";
}

// Excludes files that git needs to keep a directory, the boot id, and a list that was recorded only
// in part.
bool is_comparable(std::string_view path) {
  return !path.ends_with("/module_name") && !path.ends_with("/boot_id") &&
         !path.ends_with("/mig-minors");
}

TEST(SimulatedH200, HasEveryRecordedFileOfProcAndSys) {
  const test::Machine machine("h200");
  const auto host = machine.host();
  const auto real = *sys::Host::at(golden());
  std::size_t compared = 0;
  for (const auto* area : {"/proc", "/sys"}) {
    for (const auto& entry : fs::recursive_directory_iterator(golden() + area)) {
      const auto path = entry.path().string().substr(golden().size());
      if (entry.is_symlink() || !entry.is_regular_file() || !is_comparable(path)) continue;
      EXPECT_EQ(host.read(path).value_or("(absent)"), *real.read(path)) << path;
      ++compared;
    }
  }
  EXPECT_GT(compared, 60U);
}

TEST(SimulatedH200, LinksSysfsAsTheRealOneDoes) {
  const test::Machine machine("h200");
  const auto host = machine.host();
  std::size_t compared = 0;
  for (const auto& entry : fs::recursive_directory_iterator(golden() + "/sys")) {
    if (!entry.is_symlink()) continue;
    const auto path = entry.path().string().substr(golden().size());
    EXPECT_EQ(host.link(path).value_or("(absent)"), fs::read_symlink(entry.path()).string())
        << path;
    ++compared;
  }
  EXPECT_GT(compared, 5U);
}

TEST(SimulatedH200, HasTheSameDeviceNodes) {
  const test::Machine machine("h200");
  auto table = [](const sys::Host& host) {
    const auto text = *host.read("/dev.table");
    std::set<std::string> nodes;
    for (const auto line : lines(text)) nodes.emplace(line);
    return nodes;
  };
  EXPECT_EQ(table(machine.host()), table(*sys::Host::at(golden())));
}

TEST(SimulatedH200, NumbersMigCapabilitiesAsTheRealOneDoes) {
  const test::Machine machine("h200");
  const auto recorded = *sys::Host::at(golden())->read("/proc/driver/nvidia-caps/mig-minors");
  const auto ours = *machine.host().read("/proc/driver/nvidia-caps/mig-minors");
  for (const auto line : lines(recorded))
    EXPECT_TRUE(contains(ours, std::string(line) + "\n")) << line;
}

TEST(SimulatedH200, HasTheSamePermissionsOnAGpusFiles) {
  const test::Machine machine("h200");
  const auto host = machine.host();
  const std::string gpu = "/sys/bus/pci/devices/0000:00:06.0/";
  const std::pair<std::string, std::uint32_t> modes[] = {
      {"class", 0444},        {"config", 0644},    {"driver_override", 0644},
      {"numa_node", 0644},    {"remove", 0220},    {"rescan", 0200},
      {"reset", 0200},        {"resource0", 0600}, {"resource2_wc", 0600},
      {"serial_number", 0400}};
  for (const auto& [name, mode] : modes) EXPECT_EQ(host.info(gpu + name)->mode, mode) << name;
  for (const auto* absent : {"iommu_group", "resource1", "sriov_numvfs"})
    EXPECT_FALSE(host.exists(gpu + absent)) << absent;
  EXPECT_FALSE(host.exists("/sys/module/nvidia/refcnt"));
  EXPECT_FALSE(host.exists("/sys/firmware/efi"));
  EXPECT_FALSE(host.exists("/dev/nvidia-modeset"));
}

// Lines of the recorded `ldconfig -p`, with both directories: the guest also links the driver's
// libraries from /usr/lib, and the loader takes the first.
TEST(SimulatedH200, ListsTheDriverTwiceInTheLoadersCache) {
  const test::Machine machine("h200");
  const auto listed = sys::run_command(
      {"/sbin/ldconfig", "-p", "-C", machine.path("/etc/ld.so.cache")}, std::chrono::seconds(10));
  ASSERT_TRUE(listed.ok()) << listed.error().text();
  const auto& text = listed->output;
  EXPECT_THAT(text, ::testing::HasSubstr(
                        "\tlibcuda.so.1 (libc6,x86-64) => /usr/local/nvidia/lib64/libcuda.so.1\n"
                        "\tlibcuda.so.1 (libc6,x86-64) => /lib/libcuda.so.1\n"
                        "\tlibcuda.so (libc6,x86-64) => /usr/local/nvidia/lib64/libcuda.so\n"
                        "\tlibcuda.so (libc6,x86-64) => /lib/libcuda.so\n"));
  EXPECT_THAT(text,
              ::testing::HasSubstr(
                  "\tlibnvidia-tls.so.580.159.04 (libc6,x86-64) => "
                  "/usr/local/nvidia/lib64/libnvidia-tls.so.580.159.04\n"
                  "\tlibnvidia-tls.so (libc6,x86-64) => /usr/local/nvidia/lib64/libnvidia-tls.so\n"
                  "\tlibnvidia-tls.so (libc6,x86-64) => /lib/libnvidia-tls.so\n"));
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("=> /lib/libnvoptix")));
}

}  // namespace
}  // namespace gantry::sim
