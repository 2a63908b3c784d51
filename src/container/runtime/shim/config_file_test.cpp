// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/shim/config_file.hpp"

#include "support/tree.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ConfigFile, IsReplacedWithItsModeAndNothingIsLeftBeside) {
  test::Tree tree;
  tree.file("b/config.json", "{}");
  ASSERT_EQ(::chmod(tree.path("b/config.json").c_str(), 0600), 0);
  const auto file = ConfigFile::read(tree.path("b/config.json"));
  ASSERT_TRUE(file.ok()) << file.error().text();
  ASSERT_TRUE(file->replace("{\"a\":1}").ok());
  EXPECT_EQ(*tree.host().read("/b/config.json"), "{\"a\":1}");
  EXPECT_EQ(tree.host().info("/b/config.json")->mode, 0600);
  EXPECT_THAT(*tree.host().list("/b"), ElementsAre("config.json"));
}

TEST(ConfigFile, TheSameTextIsNotWritten) {
  test::Tree tree;
  tree.file("config.json", "{}");
  struct stat before {};
  ASSERT_EQ(::stat(tree.path("config.json").c_str(), &before), 0);
  ASSERT_TRUE(ConfigFile::read(tree.path("config.json"))->replace("{}").ok());
  struct stat after {};
  ASSERT_EQ(::stat(tree.path("config.json").c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
}

TEST(ConfigFile, BehindASymlinkIsReplacedWhereItIs) {
  test::Tree tree;
  tree.file("real/config.json", "{}").link("b/config.json", "../real/config.json");
  ASSERT_TRUE(ConfigFile::read(tree.path("b/config.json"))->replace("[]").ok());
  EXPECT_EQ(*tree.host().link("/b/config.json"), "../real/config.json");
  EXPECT_EQ(*tree.host().read("/real/config.json"), "[]");
}

TEST(ConfigFile, OnlyRegularFilesAreRead) {
  test::Tree tree;
  tree.directory("config.json");
  EXPECT_FALSE(ConfigFile::read(tree.path("config.json")).ok());
  ASSERT_EQ(::mkfifo(tree.path("fifo").c_str(), 0600), 0);
  const auto fifo = ConfigFile::read(tree.path("fifo"));
  ASSERT_FALSE(fifo.ok());
  EXPECT_THAT(fifo.error().text(), HasSubstr("not a regular file"));
  EXPECT_EQ(ConfigFile::read(tree.path("none")).error().code(), Errc::NotFound);
}

TEST(ConfigFile, WhatIsNoJsonNamesTheFile) {
  test::Tree tree;
  tree.file("config.json", "{");
  EXPECT_THAT(ConfigFile::read(tree.path("config.json")).error().text(), HasSubstr("config.json"));
}

}  // namespace
}  // namespace gantry::runtime
