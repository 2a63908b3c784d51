// SPDX-License-Identifier: Apache-2.0
#include "base/sys/shell_command.hpp"

#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::sys {
namespace {

TEST(ShellWord, IsQuotedOnlyIfItMustBe) {
  EXPECT_EQ(shell_word("/tmp/machine-1"), "/tmp/machine-1");
  EXPECT_EQ(shell_word("/tmp/my machine"), "'/tmp/my machine'");
  EXPECT_EQ(shell_word("it's"), R"('it'\''s')");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(WithRoot, EveryCommandOfGantryGetsTheRoot) {
  EXPECT_EQ(with_root("run `gantry doctor`, then `sudo gantry cdi refresh --take-over`", "/m"),
            "run `gantry doctor --root /m`, then `sudo gantry cdi refresh --root /m --take-over`");
  EXPECT_EQ(with_root("gantry doctor --fix=a && gantry info", "/a b"),
            "gantry doctor --root '/a b' --fix=a && gantry info --root '/a b'");
  EXPECT_EQ(with_root("sudo gantry driver build --kernel 6.1.0", "/m"),
            "sudo gantry driver build --root /m --kernel 6.1.0");
}

TEST(WithRoot, OtherWordsStay) {
  for (const auto* text :
       {"another gantry is configuring an engine", "gantry inspect", "gantry share --help",
        "gantry sim list", "gantry doctor --root /x --fix",
        "gantry driver install --host-root /host", "mygantry info", "gantry information"}) {
    EXPECT_EQ(with_root(text, "/m"), text);
  }
  EXPECT_EQ(with_root("run `gantry doctor`", "/"), "run `gantry doctor`");
}

TEST(RemedyFor, TheMachineThatWeRunOnNeedsNoRoot) {
  EXPECT_EQ(remedy_for(*Host::at("/"), "sudo reboot"), "sudo reboot");
}

TEST(RemedyFor, AnotherMachinesCommandsCannotBePastedHere) {
  const test::Tree tree;
  EXPECT_EQ(remedy_for(tree.host(), "sudo reboot"), "on that machine: sudo reboot");
  EXPECT_EQ(remedy_for(tree.host(), "sudo gantry share ls  # starts it"),
            "sudo gantry share ls --root " + tree.root() + "  # starts it");
  EXPECT_EQ(remedy_for(tree.host(), "sudo modprobe nvidia; sudo gantry cdi refresh"),
            "on that machine: sudo modprobe nvidia; sudo gantry cdi refresh");
  EXPECT_EQ(remedy_for(tree.host(), "kubectl get pods; gantry doctor"),
            "kubectl get pods; gantry doctor --root " + tree.root());
  EXPECT_EQ(remedy_for(tree.host(), ""), "");
}

TEST(OnMachine, ACommandForASimulatedMachineIsNotOneOfSim) {
  test::Tree tree;
  tree.file(".gantry-sim", "gantry-sim 1\n");
  EXPECT_EQ(on_machine(tree.host(), "sudo systemctl restart docker"),
            "on that machine: sudo systemctl restart docker");
  EXPECT_EQ(on_machine(*Host::at("/"), "sudo systemctl restart docker"),
            "sudo systemctl restart docker");
}

TEST(RemedyFor, ASimulatedMachineIsRepairedByOneCommandOfSim) {
  test::Tree tree;
  tree.file(".gantry-sim", "gantry-sim 1\nmachine h200\n");
  EXPECT_EQ(remedy_for(tree.host(), "sudo reboot"),
            "gantry sim inject --root " + tree.root() + " clear  # on a real machine: sudo reboot");
  tree.file(".gantry-sim", "gantry-sim 1\nmachine no-uvm\nhealthy t4x4\n");
  EXPECT_EQ(remedy_for(tree.host(), "sudo modprobe nvidia-uvm"),
            "gantry sim create t4x4 --force --root " + tree.root() +
                "  # on a real machine: sudo modprobe nvidia-uvm");
}

}  // namespace
}  // namespace gantry::sys
