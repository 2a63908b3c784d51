// SPDX-License-Identifier: Apache-2.0
#include "prepared/collect.hpp"

#include "plan/places.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace gantry::prepared {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr auto kNow = "580.159.04-00000000000000aa";
constexpr auto kOld = "550.90.07-00000000000000bb";

class Collect : public ::testing::Test {
 protected:
  Collect() {
    add(kNow);
    add(kOld);
    tree_.link(std::string(plan::kCurrent), kNow);
    processes_.file("1/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
  }
  void add(const std::string& name) {
    const auto directory = std::string(plan::kPreparedDirectory) + "/" + name;
    tree_.file(directory + "/manifest.json",
               "{\n  \"name\": \"" + name + "\",\n  \"files\": []\n}\n");
    tree_.file(directory + "/sets/compute/lib64/libcuda.so.1");
    tree_.link(directory + "/lib64", "/etc");
  }
  bool is_there(const std::string& name) const {
    return std::filesystem::exists(tree_.path(std::string(plan::kPreparedDirectory) + "/" + name));
  }
  Result<Collected> collect_now(std::chrono::seconds youngest = std::chrono::seconds(0)) {
    return collect(tree_.host(), {.youngest = youngest, .processes = processes_.root()});
  }
  test::Tree tree_;
  test::Tree processes_;
};

TEST_F(Collect, WhatNobodyMountsGoes) {
  const auto done = collect_now();
  ASSERT_TRUE(done.ok()) << done.error().text();
  EXPECT_THAT(done->removed, ElementsAre(kOld));
  EXPECT_FALSE(is_there(kOld));
  EXPECT_TRUE(is_there(kNow));
}

TEST_F(Collect, WhatAContainerMountsStays) {
  processes_.file(
      "4711/mountinfo",
      std::string("300 299 8:1 /var/lib/gantry/driver/") + kOld +
          "/sets/compute/lib64 /usr/local/nvidia/lib64 ro,nosuid - ext4 /dev/sda1 rw\n");
  const auto done = collect_now();
  EXPECT_THAT(done->removed, IsEmpty());
  EXPECT_THAT(done->in_use, ElementsAre(kOld));
  EXPECT_TRUE(is_there(kOld));
}

TEST_F(Collect, WhatIsYoungStays) {
  EXPECT_THAT(collect_now(std::chrono::seconds(3600))->removed, IsEmpty());
  EXPECT_TRUE(is_there(kOld));
}

TEST_F(Collect, WithoutACurrentNothingGoes) {
  tree_.remove(std::string(plan::kCurrent));
  EXPECT_FALSE(collect_now().ok());
  EXPECT_TRUE(is_there(kOld));
}

TEST_F(Collect, OtherDirectoriesAreNobodysBusiness) {
  tree_.file(std::string(plan::kPreparedDirectory) + "/notes/mine.txt", "keep");
  ASSERT_TRUE(collect_now().ok());
  EXPECT_TRUE(is_there("notes/mine.txt"));
}

TEST_F(Collect, ProcessesThatEndMeanwhileAreNoTrouble) {
  processes_.directory("4712");
  EXPECT_THAT(collect_now()->removed, ElementsAre(kOld));
}

}  // namespace
}  // namespace gantry::prepared
