// SPDX-License-Identifier: Apache-2.0
#include "command_line/parse_arguments.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <utility>

namespace gantry::command_line {
namespace {

// The option of a command, or of a command above it whose options it takes, too.
const CLI::Option* find_option(const CLI::App& command, const std::string& name) {
  for (const CLI::App* app = &command; app != nullptr; app = app->get_parent()) {
    if (const auto* option = app->get_option_no_throw(name); option != nullptr) return option;
    if (!app->get_fallthrough()) break;
  }
  return nullptr;
}

class ValueSeparator {
 public:
  explicit ValueSeparator(const CLI::App& app) : command_(&app) {}

  // Returns false when the remaining words belong to another program.
  bool add(const std::string& word) {
    const bool is_value = std::exchange(value_follows_, false);
    if (is_value || word.size() < 2 || word.front() != '-') {
      result_.push_back(word);
      if (!is_value) enter(word);
      return !command_->get_prefix_command();
    }
    if (word == "--") {
      result_.push_back(word);
      return false;
    }
    add_option(word);
    return true;
  }

  void add_unchanged(const std::string& word) { result_.push_back(word); }
  std::vector<std::string> result() && { return std::move(result_); }

 private:
  void enter(const std::string& word) {
    const auto named = [&](const CLI::App* app) { return app->check_name(word); };
    const auto commands = command_->get_subcommands(named);
    if (!commands.empty()) command_ = commands.front();
  }

  void add_option(const std::string& word) {
    const auto equals = word.find('=');
    const auto name = word.substr(0, equals);
    const auto* option = find_option(*command_, name);
    const bool takes_value = option != nullptr && option->get_items_expected_max() > 0;
    const bool is_long = name.starts_with("--");
    const bool empty = equals != std::string::npos && equals + 1 == word.size();
    if (option != nullptr && !takes_value && empty) {
      throw CLI::ArgumentMismatch(word + ": the value is empty; use " + name + " or " + name +
                                  "=false");
    }
    if (takes_value && equals != std::string::npos && (empty || !is_long)) {
      result_.push_back(name);
      result_.push_back(word.substr(equals + 1));
      return;
    }
    result_.push_back(word);
    value_follows_ =
        takes_value && equals == std::string::npos && option->get_items_expected_min() > 0;
  }

  const CLI::App* command_;
  bool value_follows_ = false;
  std::vector<std::string> result_;
};

}  // namespace

std::vector<std::string> separate_values(const CLI::App& app,
                                         const std::vector<std::string>& words) {
  ValueSeparator separator(app);
  std::size_t at = 0;
  while (at < words.size() && separator.add(words[at])) ++at;
  for (++at; at < words.size(); ++at) separator.add_unchanged(words[at]);
  return std::move(separator).result();
}

void parse_arguments(CLI::App& app, int argc, char** argv) {
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  auto separated = separate_values(app, words);
  std::reverse(separated.begin(), separated.end());  // CLI11 takes the last word first
  app.parse(std::move(separated));
}

}  // namespace gantry::command_line
