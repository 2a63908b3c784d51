// SPDX-License-Identifier: Apache-2.0
// gantry config: shows what nvidia-container-runtime's config.toml sets and which values are in
// effect. As `nvidia-ctk config` it prints, changes and saves the file, comments included.
#include "base/json/document.hpp"
#include "base/sys/replace_file.hpp"
#include "container/config/config_text.hpp"
#include "gantry/commands.hpp"
#include "gantry/nvidia_ctk.hpp"
#include "gantry/table.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

namespace gantry::cli {
namespace {

struct ConfigOptions {
  std::string file;  // "": the default path
  std::string output;
  std::vector<std::string> sets;
  bool in_place = false;
  bool effective = false;
};

std::string file_of(const ConfigOptions& options, const Context& context) {
  if (!options.file.empty()) return options.file;
  if (!context.config_file.empty()) return context.config_file;
  return config::config_path(config::process_environment);
}

Result<config::LoadedSettings> load(const ConfigOptions& options, const Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  return config::load_with_warnings(host, file_of(options, context));
}

void print_warnings(const config::LoadedSettings& loaded, const std::string& file,
                    const Context& context) {
  for (const auto& warning : loaded.warnings) {
    fmt::print(context.err, "Note: {}: {}\n", file, warning);
  }
}

void print_json(const std::vector<config::EffectiveValue>& values, const Context& context) {
  std::string rows;
  for (const auto& value : values) {
    rows += fmt::format("{}\n  {{\"key\": {}, \"value\": {}, \"origin\": \"{}\"}}",
                        rows.empty() ? "" : ",", json::quote(value.key->name),
                        json::quote(value.value), to_string(value.origin));
  }
  fmt::print(context.out, "[{}\n]\n", rows);
}

Result<int> show(const ConfigOptions& options, const Context& context) {
  GANTRY_TRY(const auto loaded, load(options, context));
  print_warnings(loaded, file_of(options, context), context);
  GANTRY_TRY(auto values, config::effective_values(loaded, config::process_environment));
  if (!options.effective) {
    std::erase_if(values, [](const auto& v) { return v.origin == config::Origin::Default; });
  }
  if (context.json) {
    print_json(values, context);
    return kOk;
  }
  if (values.empty()) {
    fmt::print(context.out, "Nothing is set in {}; --effective shows the defaults.\n",
               file_of(options, context));
    return kOk;
  }
  Table table({"KEY", "VALUE", "FROM", "MEANING"});
  for (const auto& value : values) {
    table.add({std::string(value.key->name), value.value, std::string(to_string(value.origin)),
               std::string(value.key->meaning)});
  }
  fmt::print(context.out, "{}", table.text());
  return kOk;
}

Result<int> check(const ConfigOptions& options, const Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  const auto file = file_of(options, context);
  GANTRY_TRY(const auto loaded, config::load_with_warnings(host, file));
  print_warnings(loaded, file, context);
  auto copy = loaded.settings;
  GANTRY_CHECK(config::apply_environment(copy, config::process_environment));
  GANTRY_CHECK(config::check_mode(copy).in(file));
  for (const auto& word : config::describe_ignored_values(copy)) {
    fmt::print(context.err, "Note: {}: {}\n", file, word);
  }
  const bool there = host.exists(file);
  fmt::print(context.out, "{}: {}\n", file,
             !there                    ? "does not exist; the defaults are used"
             : loaded.warnings.empty() ? "is valid"
                                       : "is valid, except for unknown keys");
  return kOk;
}

Status write_to(const sys::Host& host, const std::string& path, const std::string& text) {
  const auto resolved = host.resolve(path);  // a link stays a link
  const auto& place = resolved.ok() ? *resolved : path;
  const auto info = host.info(place);
  return sys::replace_file(host.outside(place), text, info.ok() ? info->mode : 0644);
}

// Like NVIDIA's: writes the file (or the default file) with the changes to stdout or to a file.
Result<int> print_changed(const ConfigOptions& options, const Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  const auto file = file_of(options, context);
  auto text = host.read(file, config::kMaxConfigBytes);
  if (!text.ok() && text.error().code() != Errc::NotFound) return std::move(text).error();
  std::string content = text.ok() ? *std::move(text) : config::default_text(host);
  for (const auto& assignment : options.sets) {
    GANTRY_TRY(content, config::set_in_text(content, assignment));
  }
  GANTRY_TRY(const auto loaded, config::parse(content).in(file));
  if (!context.quiet) print_warnings(loaded, file, context);
  if (options.in_place) {
    GANTRY_CHECK(write_to(host, file, content));
  } else if (!options.output.empty()) {
    GANTRY_CHECK(write_to(host, options.output, content));
  } else {
    fmt::print(context.out, "{}", content);
  }
  return kOk;
}

Result<int> print_default(const ConfigOptions& options, const Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  const auto text = config::default_text(host);
  if (options.output.empty()) {
    fmt::print(context.out, "{}", text);
    return kOk;
  }
  GANTRY_CHECK(write_to(host, options.output, text));
  return kOk;
}

void add_file(CLI::App& command, ConfigOptions& options) {
  command
      .add_option("-c,--config-file,--config", options.file,
                  "The file (default: the runtime's own)")
      ->type_name("FILE")
      ->transform(absolute_path());
}

void add_changes(CLI::App& config, Context& context, const std::shared_ptr<ConfigOptions>& options,
                 Action& chosen) {
  auto* set = config.add_subcommand("set", "Change keys in the file; keeps comments and order");
  add_root_option(*set, context);
  add_file(*set, *options);
  set->add_option("assignments", options->sets, "KEY=VALUE; for a boolean, KEY alone means true")
      ->type_name("KEY[=VALUE]")
      ->required();
  add_examples(*set, "  gantry config set nvidia-container-cli.no-cgroups=false\n");
  set->callback([options, &chosen] {
    options->in_place = true;
    chosen = [options](Context& ctx) { return print_changed(*options, ctx); };
  });
  auto* defaults = config.add_subcommand("default", "Print the default file");
  add_root_option(*defaults, context);
  defaults->callback([options, &chosen] {
    chosen = [options](Context& ctx) { return print_default(*options, ctx); };
  });
}

}  // namespace

void add_config(CLI::App& app, Context& context, Action& chosen) {
  auto options = std::make_shared<ConfigOptions>();
  auto* config = app.add_subcommand("config", "Show, check or change the runtime's config.toml");
  config->require_subcommand(1);
  auto* shown = config->add_subcommand("show", "Show the keys that are set");
  add_machine_options(*shown, context);
  add_file(*shown, *options);
  shown->add_flag("--effective", options->effective,
                  "All keys, also those that have their default");
  add_examples(*shown, "  gantry config show --effective");
  shown->callback(
      [options, &chosen] { chosen = [options](Context& ctx) { return show(*options, ctx); }; });
  auto* checked = config->add_subcommand("check", "Check the file and list its errors");
  add_machine_options(*checked, context);
  add_file(*checked, *options);
  checked->callback(
      [options, &chosen] { chosen = [options](Context& ctx) { return check(*options, ctx); }; });
  add_changes(*config, context, options, chosen);
}

void add_ctk_config(CLI::App& app, Context& /*context*/, Action& chosen) {
  auto options = std::make_shared<ConfigOptions>();
  auto* config = app.add_subcommand("config", "Print or change config.toml");
  add_file(*config, *options);
  config
      ->add_option("--set", options->sets,
                   "Set a key: name=value; for a boolean, name alone means true")
      ->type_name("KEY[=VALUE]")
      ->allow_extra_args(false);
  config->add_flag("-i,--in-place", options->in_place, "Change the file in place");
  config->add_option("-o,--output", options->output, "Write to this file instead of stdout")
      ->type_name("FILE")
      ->transform(absolute_path());
  auto* defaults = config->add_subcommand("default", "Print the default file");
  defaults->alias("create-default")->alias("generate-default");
  defaults->add_option("-o,--output", options->output, "Write to this file instead of stdout")
      ->type_name("FILE")
      ->transform(absolute_path());
  config->callback([options, defaults, &chosen] {
    const bool only_default = defaults->parsed();
    chosen = [options, only_default](Context& ctx) {
      return only_default ? print_default(*options, ctx) : print_changed(*options, ctx);
    };
  });
}

}  // namespace gantry::cli
