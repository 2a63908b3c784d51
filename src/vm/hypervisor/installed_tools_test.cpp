// SPDX-License-Identifier: Apache-2.0
// What we write, judged by the programs that will read it, where they are installed: libvirt's own
// schema, and QEMU's own list of properties.
#include "support/tree.hpp"
#include "vm/hypervisor/gpus_for_test.hpp"
#include "vm/hypervisor/qemu_command.hpp"
#include "vm/hypervisor/write_config.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace gantry::hypervisor {
namespace {

struct ProgramOutput {
  int status = -1;
  std::string text;
};

ProgramOutput run_shell(const std::string& command) {
  ProgramOutput output;
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return output;
  char buffer[4096];
  while (const auto got = std::fread(buffer, 1, sizeof buffer, pipe)) {
    output.text.append(buffer, got);
  }
  output.status = ::pclose(pipe);
  return output;
}

bool has_program(const std::string& name) {
  return run_shell("command -v " + name).status == 0;
}

// GANTRY_LIBVIRT_SCHEMAS: where a package was unpacked without being installed.
std::string schema() {
  const char* elsewhere = std::getenv("GANTRY_LIBVIRT_SCHEMAS");
  const std::string directory = elsewhere != nullptr ? elsewhere : "/usr/share/libvirt/schemas";
  return directory + "/domain.rng";
}

// Without KVM a processor has 40 address bits, so no window here is larger than 512 GiB.
std::vector<VmSpec> machines() {
  std::vector<VmSpec> all(5);
  all[0].gpus = {card_at("h200", "0000:3b:00.0", 0)};
  all[1].gpus = {card_at("a100-80", "0000:3b:00.0", 0), card_at("l40s", "0000:86:00.0", 1)};
  all[1].huge_pages = HugePages::Size1G;
  all[2].gpus = {with_audio(card_at("t4", "0000:3b:00.0", 0)),
                 with_audio(card_at("t4", "0000:3c:00.0", 0))};
  all[2].firmware = Firmware::Bios;
  all[3].gpus = {mdev_at("0000:3b:00.0", "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001")};
  all[4].gpus = {vendor_vf_at("0000:86:00.4")};
  return all;
}

TEST(InstalledTools, LibvirtsSchemaAcceptsTheDomains) {
  if (!has_program("xmllint")) GTEST_SKIP() << "xmllint (libxml2-utils) is not installed";
  if (!std::filesystem::exists(schema())) GTEST_SKIP() << "there is no " << schema();
  test::Tree tree;
  for (const auto& vm : machines()) {
    const auto config = write_config(Hypervisor::Libvirt, vm);
    ASSERT_TRUE(config.ok()) << config.error().text();
    tree.file("domain.xml", config->text);
    const auto run = run_shell(
        fmt::format("xmllint --noout --relaxng {} {}", schema(), tree.path("domain.xml")));
    EXPECT_EQ(run.status, 0) << run.text << config->text;
  }
}

// `-device pxb-pcie,help` lists "  numa_node=<uint16>   - ...", or "pxb-pcie.numa_node=uint16".
void expect_known(const std::string& option, const std::string& value, const std::string& first) {
  const auto properties = parse_properties(value, first);
  ASSERT_TRUE(properties.ok());
  const auto type = properties->at(first);
  const auto run =
      run_shell(fmt::format("qemu-system-x86_64 -M q35 -{} {},help < /dev/null", option, type));
  EXPECT_EQ(run.status, 0) << run.text;
  for (const auto& [name, unused] : *properties) {
    if (name == first || name == "id" || name == "bus") continue;
    EXPECT_THAT(run.text, testing::ContainsRegex("[ .]" + name + "=")) << type;
  }
}

TEST(InstalledTools, QemuKnowsEveryPropertyThatWeUse) {
  if (!has_program("qemu-system-x86_64"))
    GTEST_SKIP() << "qemu-system-x86_64 (qemu-system-x86) is not installed";
  for (const auto& vm : machines()) {
    const auto config = write_config(Hypervisor::Qemu, vm);
    ASSERT_TRUE(config.ok());
    const auto command = parse_qemu_command(config->text);
    ASSERT_TRUE(command.ok());
    for (const auto& option : command->options) {
      if (option.name == "device") expect_known("device", option.value, "driver");
      if (option.name == "object") expect_known("object", option.value, "qom-type");
    }
  }
}

// Starts QEMU stopped, with everything that needs neither KVM, a GPU nor the firmware's files.
TEST(InstalledTools, QemuStartsWithTheRestOfTheOptions) {
  if (!has_program("qemu-system-x86_64"))
    GTEST_SKIP() << "qemu-system-x86_64 (qemu-system-x86) is not installed";
  for (auto vm : machines()) {
    vm.memory_bytes = 64 * kMiB;
    vm.huge_pages = HugePages::None;
    for (auto& gpu : vm.gpus) gpu.numa_node.reset();
    const auto config = write_config(Hypervisor::Qemu, vm);
    ASSERT_TRUE(config.ok());
    const auto command = parse_qemu_command(config->text);
    ASSERT_TRUE(command.ok());
    std::string line = "qemu-system-x86_64 -S -accel tcg -monitor stdio";
    for (const auto& option : command->options) {
      if (option.value.starts_with("vfio-pci") || option.name == "drive" ||
          option.name == "serial") {
        continue;
      }
      auto value = option.name == "machine" ? "q35" : option.value;
      if (option.name == "cpu") value = "max";
      line += fmt::format(" -{} '{}'", option.name, value);
      if (option.value.empty()) line.resize(line.size() - 3);
    }
    const auto run = run_shell("echo quit | timeout 60 " + line);
    EXPECT_EQ(run.status, 0) << line << "\n" << run.text;
  }
}

}  // namespace
}  // namespace gantry::hypervisor
