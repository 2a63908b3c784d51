// SPDX-License-Identifier: Apache-2.0
// gantry cdi transform: rewrites a specification for another root or an older engine.
#include "container/cdi/transform.hpp"
#include "gantry/cdi.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace gantry::cli {
namespace {

struct Files {
  std::string input = "-";
  std::string output;
};

struct RootOptions : Files {
  cdi::RootChange change;
  std::string side = "host";
};

struct VersionOptions : Files {
  std::string target;
};

Result<cdi::PathSide> parse_side(std::string_view word) {
  if (word == "host") return cdi::PathSide::Host;
  if (word == "container") return cdi::PathSide::Container;
  return Error(Errc::Invalid, fmt::format("--relative-to {}: use host or container", word));
}

Result<int> transform_root(const RootOptions& options, Context& context) {
  auto change = options.change;
  GANTRY_TRY(change.side, parse_side(options.side));
  GANTRY_TRY(auto spec, read_spec_file(options.input));
  cdi::transform_root(spec, change);
  // A device node whose host path changed may need a newer CDI version than the file had.
  GANTRY_TRY(const auto version, cdi::parse_version(spec.version));
  spec.version = cdi::to_string(std::max(version, cdi::lowest_version(spec)));
  GANTRY_CHECK(print_spec(spec, options.output, context));
  return kOk;
}

Result<int> transform_version(const VersionOptions& options, Context& context) {
  GANTRY_TRY(const auto target, cdi::parse_version(options.target));
  GANTRY_TRY(const auto spec, read_spec_file(options.input));
  GANTRY_TRY(const auto converted, cdi::downgrade(spec, target));
  for (const auto& word : converted.words) print_note(word, context);
  GANTRY_CHECK(print_spec(converted.spec, options.output, context));
  return kOk;
}

void add_file_options(CLI::App& command, Files& files) {
  command.add_option("--input", files.input, "File to read, - for standard input")
      ->type_name("FILE")
      ->capture_default_str();
  command.add_option("--output", files.output, "File to write (.json is JSON); standard output")
      ->type_name("FILE");
}

}  // namespace

void add_cdi_transform(CLI::App& cdi, Context& /*context*/, Action& chosen) {
  auto* transform = cdi.add_subcommand(
      "transform", "Rewrite a specification for another root or an older engine");
  transform->require_subcommand(1);

  auto root = std::make_shared<RootOptions>();
  auto* root_command = transform->add_subcommand("root", "Replace the beginning of its paths");
  root_command->add_option("--from", root->change.from, "The old beginning of the paths")
      ->type_name("DIR")
      ->required();
  root_command->add_option("--to", root->change.to, "The new beginning of the paths")
      ->type_name("DIR")
      ->required();
  root_command->add_option("--relative-to", root->side, "Which paths to change: host or container")
      ->type_name("SIDE")
      ->capture_default_str();
  add_file_options(*root_command, *root);
  add_examples(
      *root_command,
      "  cdi transform root --from /run/nvidia/driver --to / --input /etc/cdi/nvidia.yaml\n");
  root_command->callback(
      [=, &chosen] { chosen = [=](Context& c) { return transform_root(*root, c); }; });

  auto version = std::make_shared<VersionOptions>();
  auto* version_command = transform->add_subcommand(
      "version", "Write it in an older version; print a note for each entry that is dropped");
  version_command->add_option("--target-version", version->target, "0.3.0 to 1.1.0")
      ->type_name("VERSION")
      ->required();
  add_file_options(*version_command, *version);
  version_command->callback(
      [=, &chosen] { chosen = [=](Context& c) { return transform_version(*version, c); }; });
}

}  // namespace gantry::cli
