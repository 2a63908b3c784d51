// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/machine.hpp"

#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::sim {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kOneGpu =
    "driver: {version: 1.2, library_directory: /usr/lib}\n"
    "gpus:\n"
    "  - {name: A, uuid: GPU-1, pci: {address: '0000:01:00.0'}}\n";

TEST(Catalog, EveryMachineCanBeReadAndSaysWhatItIs) {
  ASSERT_FALSE(machine_catalog().empty());
  for (const auto& entry : machine_catalog()) {
    const auto machine = load_machine(entry.name);
    ASSERT_TRUE(machine.ok()) << entry.name << ": " << machine.error().text();
    EXPECT_EQ(machine->name, entry.name);
    EXPECT_GT(entry.description.size(), 20U) << entry.name;
    EXPECT_LT(entry.description.size(), 110U) << entry.name;
  }
}

TEST(Machine, UnknownKeysAreErrorsWithFileAndLine) {
  const auto machine = parse_machine("description: x\ncolour: red\n", "mine.yaml");
  ASSERT_FALSE(machine.ok());
  EXPECT_EQ(machine.error().code(), Errc::Corrupt);
  EXPECT_THAT(machine.error().text(), HasSubstr("mine.yaml:2: machine has no key \"colour\""));
}

TEST(Machine, UnknownKeysInsideAGpuAreErrorsToo) {
  const auto machine = parse_machine("gpus:\n  - name: A\n    uid: GPU-1\n", "mine.yaml");
  ASSERT_FALSE(machine.ok());
  EXPECT_THAT(machine.error().text(), HasSubstr("mine.yaml:3: gpu has no key \"uid\""));
}

TEST(Machine, AUserFileMayTakeABuiltInCardAndChangeIt) {
  const auto machine = parse_machine(
      "driver: {include: '580', library_directory: /usr/lib}\n"
      "gpus:\n  - {card: h200, uuid: GPU-1, temperature: 80, pci: {address: '0000:01:00.0'}}\n",
      "mine.yaml");
  ASSERT_TRUE(machine.ok()) << machine.error().text();
  EXPECT_EQ(machine->gpus[0].name, "NVIDIA H200");
  EXPECT_EQ(machine->gpus[0].temperature, 80);
  EXPECT_EQ(machine->gpus[0].pci.device, 0x2335U);
  EXPECT_EQ(machine->driver.cuda, 13000U);
}

TEST(Machine, AnUnknownCardIsAnsweredWithTheKnownOnes) {
  const auto machine = parse_machine("gpus:\n  - {card: h201, uuid: GPU-1}\n", "mine.yaml");
  ASSERT_FALSE(machine.ok());
  EXPECT_THAT(machine.error().text(),
              HasSubstr("mine.yaml: there is no card \"h201\"; there are "));
  EXPECT_THAT(machine.error().text(), HasSubstr("h200, "));
}

TEST(Machine, AFileWithoutContentIsRefusedByItsName) {
  test::Tree tree;
  tree.file("mine.yaml", "\n");
  const auto machine = load_machine(tree.path("mine.yaml"));
  ASSERT_FALSE(machine.ok());
  EXPECT_THAT(machine.error().text(), HasSubstr("mine.yaml is empty"));
}

TEST(Machine, TextAloneCannotNameFilesOfTheHost) {
  const auto machine = parse_machine("based_on: /etc/passwd\n", "mine.yaml");
  ASSERT_FALSE(machine.ok());
  EXPECT_EQ(machine.error().code(), Errc::Denied);
}

TEST(Machine, ABasedOnCircleEnds) {
  const auto machine = parse_machine("based_on: h200\nbased_on: h200\n", "mine.yaml");
  ASSERT_FALSE(machine.ok());
  EXPECT_THAT(machine.error().text(), HasSubstr("given twice"));
}

TEST(Machine, TwoGpusOnOneAddressAreRefused) {
  const auto machine =
      parse_machine(std::string(kOneGpu) +
                        "  - {name: B, uuid: GPU-2, minor: 1, pci: {address: '0000:01:00.0'}}\n",
                    "mine.yaml");
  ASSERT_FALSE(machine.ok());
  EXPECT_THAT(machine.error().text(), HasSubstr("two PCI functions are at 0000:01:00.0"));
}

TEST(Machine, BridgesInALoopAreRefused) {
  const auto machine = parse_machine(
      "pci:\n  - {address: '0000:01:00.0', parent: '0000:02:00.0'}\n"
      "  - {address: '0000:02:00.0', parent: '0000:01:00.0'}\n",
      "mine.yaml");
  ASSERT_FALSE(machine.ok());
  EXPECT_THAT(machine.error().text(), HasSubstr("form a loop"));
}

TEST(Machine, TextsThatDoNotFitTheImageAreRefused) {
  const auto machine = parse_machine("name: " + std::string(100, 'x') + "\n", "mine.yaml");
  ASSERT_FALSE(machine.ok());
  EXPECT_THAT(machine.error().text(), HasSubstr("name is longer than 31 characters"));
}

class HostileYaml : public ::testing::TestWithParam<std::string> {};
TEST_P(HostileYaml, IsAnErrorNotACrash) {
  const auto machine = parse_machine(GetParam(), "mine.yaml");
  ASSERT_FALSE(machine.ok());
  EXPECT_EQ(machine.error().code(), Errc::Corrupt);
  EXPECT_THAT(machine.error().text(), HasSubstr("mine.yaml"));
}

std::string alias_bomb() {
  std::string text = "a: &a [x,x,x,x,x,x,x,x,x]\n";
  for (char c = 'b'; c < 'k'; ++c) {
    text += std::string(1, c) + ": &" + c + " [";
    for (int i = 0; i < 9; ++i) text += std::string("*") + static_cast<char>(c - 1) + ",";
    text += "]\n";
  }
  return text;
}

// Not the constructor: a length of this size there looks like a mistake.
std::string enormous() {
  std::string text;
  text.resize(100'000'000, 'x');
  return text;
}

INSTANTIATE_TEST_SUITE_P(
    Yaml, HostileYaml,
    ::testing::Values(alias_bomb(), std::string(5000, '['), std::string(5000, '{'),
                      std::string(100, '['), std::string("a: ") + enormous(),
                      std::string("a: b\n--- \nc: d\n"), std::string("gpus: 7\n"),
                      std::string("gpus: [7]\n"), std::string("- a\n- b\n"), std::string("hello"),
                      std::string("a: !!binary x\n"), std::string("a: \"\\xZZ\"\n"),
                      std::string("\0a: b", 5), std::string("? [a]\n: b\n"),
                      std::string("a: b\na: c\n"), std::string("driver: {cuda: 13}\n"),
                      std::string("driver: {nvidia_major: 99999}\n"),
                      std::string("nodes: {mode: 999}\n"), std::string("numa: [{cpus: 5-1}]\n"),
                      std::string("numa: [{cpus: 0-99999999}]\n"),
                      std::string("change_gpus: {9: {lost: true}}\n"),
                      std::string("gpus: [{name: A, uuid: B, mig: ['x@9']}]\n")));

TEST(Yaml, ManyValuesAreRefused) {
  std::string text = "a: [";
  for (int i = 0; i < 30'000; ++i) text += "1,";
  const auto machine = parse_machine(text + "]\n", "mine.yaml");
  ASSERT_FALSE(machine.ok());
  EXPECT_THAT(machine.error().text(), HasSubstr("more than 20000 values"));
}

TEST(Machine, WithoutGpusMustSaySo) {
  const auto forgotten = parse_machine("description: nothing\n", "mine.yaml");
  ASSERT_FALSE(forgotten.ok());
  EXPECT_THAT(forgotten.error().text(), ::testing::HasSubstr("write `gpus: []`"));
  EXPECT_TRUE(parse_machine("gpus: []\n", "mine.yaml").ok());
}

}  // namespace
}  // namespace gantry::sim
