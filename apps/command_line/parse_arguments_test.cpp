// SPDX-License-Identifier: Apache-2.0
#include "command_line/parse_arguments.hpp"

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>

namespace gantry::command_line {
namespace {

using testing::ElementsAre;
using Words = std::vector<std::string>;

class SeparateValues : public testing::Test {
 protected:
  SeparateValues() {
    app_.fallthrough();
    app_.add_option("--config", config_);
    auto* command = app_.add_subcommand("run", "");
    command->add_option("-f,--file", file_);
    command->add_flag("--dry-run", dry_);
    command->add_option("words", words_);
    app_.add_subcommand("pass", "")->prefix_command();
  }
  Words separate(const Words& words) { return separate_values(app_, words); }

  CLI::App app_;
  std::string config_;
  std::string file_;
  bool dry_ = false;
  Words words_;
};

TEST_F(SeparateValues, AnEmptyValueIsItsOwnWord) {
  EXPECT_THAT(separate({"run", "--file=", "--dry-run"}),
              ElementsAre("run", "--file", "", "--dry-run"));
  EXPECT_THAT(separate({"run", "--config="}), ElementsAre("run", "--config", ""));
  EXPECT_THAT(separate({"run", "-f=/x"}), ElementsAre("run", "-f", "/x"));
}

TEST_F(SeparateValues, OtherWordsStay) {
  const Words plain{
      "run", "--file=/x", "--file", "--dry-run=", "--unknown=", "a=", "--", "--file="};
  EXPECT_EQ(separate(plain), plain);
  const Words passed{"pass", "x", "--config="};
  EXPECT_EQ(separate(passed), passed);
}

TEST_F(SeparateValues, AFlagHasNoEmptyValue) {
  EXPECT_THROW(separate({"run", "--dry-run="}), CLI::ArgumentMismatch);
  EXPECT_THAT(separate({"run", "--dry-run=false"}), ElementsAre("run", "--dry-run=false"));
}

TEST_F(SeparateValues, TheParsedValueIsEmpty) {
  file_ = "before";
  Words words{"program", "run", "--file=", "--dry-run", "word"};
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  parse_arguments(app_, static_cast<int>(argv.size()), argv.data());
  EXPECT_EQ(file_, "");
  EXPECT_TRUE(dry_);
  EXPECT_THAT(words_, ElementsAre("word"));
}

}  // namespace
}  // namespace gantry::command_line
