// SPDX-License-Identifier: Apache-2.0
#include "gpu/procfs/gpus.hpp"

#include "support/paths.hpp"
#include "support/tree.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace gantry::procfs {
namespace {

using namespace std::string_literals;
using test::Tree;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// In parts, because "?""?-" is a trigraph.
constexpr std::string_view kUnreadUuid =
    "GPU-????????"
    "-????"
    "-????"
    "-????"
    "-????????????";
constexpr std::string_view kUuid = "GPU-11111111-2222-3333-4444-555555555555";

// The lines that all drivers write; `last_lines` depends on the version.
std::string information(std::string_view model, std::string_view uuid, std::string_view vbios,
                        std::string_view last_lines) {
  return fmt::format(
      "Model: \t\t {}\nIRQ:   \t\t 82\nGPU UUID: \t {}\nVideo BIOS: \t {}\nBus Type: \t PCIe\n"
      "DMA Size: \t 47 bits\nDMA Mask: \t 0x7fffffffffff\nBus Location: \t 0000:00:1e.0\n{}",
      model, uuid, vbios, last_lines);
}

struct Case {
  std::string about;
  std::string text;
  model::Gpu gpu;
  bool excluded = false;
  std::vector<std::string_view> missing;
};

model::Gpu gpu(std::string_view name, std::string_view uuid, std::optional<std::uint32_t> minor,
               std::string_view vbios = "", std::string_view firmware = "") {
  model::Gpu gpu;
  gpu.name = name;
  gpu.uuid.text = uuid;
  gpu.minor = minor;
  gpu.vbios = vbios;
  gpu.gsp_firmware = firmware;
  return gpu;
}

std::string recorded_h200() {
  const auto host = sys::Host::at(test::source_dir() + "/tests/golden/h200");
  EXPECT_TRUE(host.ok());
  return host->read("/proc/driver/nvidia/gpus/0000:00:06.0/information").value_or("");
}

std::vector<Case> cases() {
  const std::string t4 =
      information("Tesla T4", kUuid, "90.04.38.00.03", "Device Minor: \t 5\nBlacklisted:\t No\n");
  const std::string unread =
      information("Unknown", kUnreadUuid, "??.??.??.??.??",
                  "Device Minor: \t 1\nGPU Firmware: \t N/A\nGPU Excluded:\t No\n");
  return {
      {"580 on an H200, recorded", recorded_h200(),
       gpu("NVIDIA H200", kUuid, 0, "96.00.A5.00.1A", "580.159.04")},
      {"before 460", t4, gpu("Tesla T4", kUuid, 5, "90.04.38.00.03")},
      {"before 460, excluded",
       information("Tesla T4", kUuid, "90.04.38.00.03", "Device Minor: \t 5\nBlacklisted:\t Yes\n"),
       gpu("Tesla T4", kUuid, 5, "90.04.38.00.03"), true},
      {"excluded",
       information("NVIDIA A100", kUuid, "92", "Device Minor: \t 2\nGPU Excluded:\t Yes"),
       gpu("NVIDIA A100", kUuid, 2, "92"), true},
      {"340, which does not write the minor",
       information("GeForce", kUuid, "80.07.35.00.80", ""),
       gpu("GeForce", kUuid, std::nullopt, "80.07.35.00.80"),
       false,
       {"Device Minor"}},
      {"not read from the card yet", unread, gpu("", "", 1)},
      {"truncated in a value",
       t4.substr(0, t4.find("4444")),
       gpu("Tesla T4", "GPU-11111111-2222-3333-", std::nullopt),
       false,
       {"Device Minor"}},
      {"truncated in a key",
       t4.substr(0, t4.find("UUID")),
       gpu("Tesla T4", "", std::nullopt),
       false,
       {"GPU UUID", "Device Minor"}},
      {"empty", "", model::Gpu{}, false, {"Model", "GPU UUID", "Device Minor"}},
      {"no line ends",
       std::string(60000, ':'),
       model::Gpu{},
       false,
       {"Model", "GPU UUID", "Device Minor"}},
      {"a minor that is too large",
       "Model: a\nGPU UUID: b\nDevice Minor: 1048576\n",
       gpu("a", "b", std::nullopt),
       false,
       {"Device Minor"}},
      {"a negative minor",
       "Model: a\nGPU UUID: b\nDevice Minor: -1\n",
       gpu("a", "b", std::nullopt),
       false,
       {"Device Minor"}},
      {"keys that only begin like ours",
       "Model: a\nGPU UUID: b\nGPU UUID of a friend: c\nDevice Minor: 3\nGPU Excluded by: Yes\n",
       gpu("a", "b", 3)},
      {"bytes",
       "Model: \0\xff\x1b[2J\nGPU UUID: \xc3(\nDevice Minor: 3\0\n"s,
       gpu(std::string_view("\0\xff\x1b[2J", 6), "\xc3(", std::nullopt),
       false,
       {"Device Minor"}},
  };
}

TEST(InformationFile, IsReadAsEveryDriverWritesIt) {
  for (const auto& one : cases()) {
    SCOPED_TRACE(one.about);
    const auto found = parse_information_file(one.text);
    EXPECT_EQ(found.gpu, one.gpu);
    EXPECT_EQ(found.excluded, one.excluded);
    EXPECT_EQ(found.missing, one.missing);
  }
}

TEST(InformationFile, NamesTheLineThatExcludes) {
  EXPECT_EQ(parse_information_file("Blacklisted:\t Yes\n").exclusion_line, "Blacklisted");
  EXPECT_EQ(parse_information_file("GPU Excluded:\t No\n").exclusion_line, "GPU Excluded");
  EXPECT_EQ(parse_information_file("Model: a\n").exclusion_line, "");
}

Tree& add_gpu(Tree& tree, std::string_view address, std::string_view text) {
  return tree.file(fmt::format("proc/driver/nvidia/gpus/{}/information", address), text);
}

TEST(ReadGpus, SortsByAddressAcrossDomainsAndKeepsExcludedOnes) {
  Tree tree;
  add_gpu(tree, "10000:01:00.0", "Device Minor: 2\n");
  add_gpu(tree, "e322:00:00.0", "Blacklisted: Yes\n");
  add_gpu(tree, "0000:81:00.0", "Device Minor: 0\n");
  tree.file("proc/driver/nvidia/gpus/README").directory("proc/driver/nvidia/gpus/power");
  const auto gpus = read_gpus(tree.host());
  ASSERT_TRUE(gpus.ok()) << gpus.error().text();
  ASSERT_THAT(*gpus, SizeIs(3));
  EXPECT_EQ((*gpus)[0].path, "/proc/driver/nvidia/gpus/0000:81:00.0/information");
  EXPECT_EQ((*gpus)[1].information.gpu.pci.sysfs(), "e322:00:00.0");
  EXPECT_TRUE((*gpus)[1].information.excluded);
  EXPECT_EQ((*gpus)[2].information.gpu.minor, 2U);
  EXPECT_EQ((*gpus)[2].read_error, "");
}

TEST(ReadGpus, KeepsAGpuWhoseFileCannotBeRead) {
  Tree tree;
  tree.directory("proc/driver/nvidia/gpus/0000:01:00.0");
  add_gpu(tree, "0000:02:00.0", std::string(70000, 'x'));
  const auto gpus = read_gpus(tree.host());
  ASSERT_TRUE(gpus.ok()) << gpus.error().text();
  ASSERT_THAT(*gpus, SizeIs(2));
  EXPECT_THAT((*gpus)[0].read_error, HasSubstr("0000:01:00.0/information"));
  EXPECT_THAT((*gpus)[0].information.missing, SizeIs(3));
  EXPECT_THAT((*gpus)[1].read_error, HasSubstr("0000:02:00.0/information"));
  EXPECT_EQ((*gpus)[1].information.gpu.minor, std::nullopt);
}

// The driver reads these files under a lock that an open holds. A pipe without a writer blocks its
// reader in the same way.
TEST(ReadGpus, GivesUpOnADriverThatDoesNotAnswer) {
  Tree tree;
  add_gpu(tree, "0000:01:00.0", "Device Minor: 0\n");
  tree.directory("proc/driver/nvidia/gpus/0000:02:00.0");
  const auto file = tree.path("proc/driver/nvidia/gpus/0000:02:00.0/information");
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  add_gpu(tree, "0000:03:00.0", "Device Minor: 2\n");
  const auto gpus = read_gpus(tree.host(), std::chrono::milliseconds(200));
  ASSERT_TRUE(gpus.ok()) << gpus.error().text();
  ASSERT_THAT(*gpus, SizeIs(3));
  EXPECT_TRUE((*gpus)[1].silent);
  EXPECT_EQ((*gpus)[1].information.gpu.minor, std::nullopt);
  EXPECT_THAT((*gpus)[1].read_error, HasSubstr("did not return within 200 ms"));
  const int writer = ::open(file.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  EXPECT_GE(writer, 0);
  ::close(writer);  // lets the reader go
}

TEST(ReadGpu, KnowsASilentDriverFromAMissingGpu) {
  Tree tree;
  add_gpu(tree, "0000:01:00.0", "GPU UUID: GPU-1\nDevice Minor: 3\n");
  tree.directory("proc/driver/nvidia/gpus/0000:02:00.0");
  const auto file = tree.path("proc/driver/nvidia/gpus/0000:02:00.0/information");
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  const auto read = [&](std::string_view address) {
    return read_gpu(tree.host(), *model::PciAddress::parse(address),
                    std::chrono::milliseconds(200));
  };
  EXPECT_EQ(read("0000:01:00.0")->gpu.minor, 3U);
  EXPECT_EQ(read("0000:01:00.0")->gpu.pci.sysfs(), "0000:01:00.0");
  EXPECT_EQ(read("0000:02:00.0").error().code(), Errc::Timeout);
  EXPECT_EQ(read("0000:03:00.0").error().code(), Errc::NotFound);
  const int writer = ::open(file.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  EXPECT_GE(writer, 0);
  ::close(writer);  // lets the reader go
}

TEST(ReadGpus, FailsWithoutADriverOrWithTooManyEntries) {
  Tree tree;
  EXPECT_EQ(read_gpus(tree.host()).error().code(), Errc::NotFound);
  tree.directory("proc/driver/nvidia/gpus");
  EXPECT_THAT(*read_gpus(tree.host()), IsEmpty());
  for (int i = 0; i < 257; ++i) tree.directory(fmt::format("proc/driver/nvidia/gpus/{}", i));
  EXPECT_EQ(read_gpus(tree.host()).error().code(), Errc::Corrupt);
}

}  // namespace
}  // namespace gantry::procfs
