// SPDX-License-Identifier: Apache-2.0
// gantry config: shows what nvidia-container-runtime's config.toml sets and which values are in
// effect. As `nvidia-ctk config` it prints, changes and saves the file, comments included.
#include "base/json/writer.hpp"
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

// A file of the machine, or a file of the caller that lies outside of the machine's root.
struct ConfigFile {
  sys::Host host;
  std::string path;    // inside the root of `host`
  bool named = false;  // the user named it, so it must exist
};

Result<ConfigFile> find_file(const ConfigOptions& options, const Context& context) {
  GANTRY_TRY(auto machine, open_host(context));
  auto file = !options.file.empty() ? options.file : context.config_file;
  const bool named = !file.empty();
  if (!named) file = config::config_path(config::process_environment);
  if (named && !machine.is_live() && !machine.exists(file)) {
    GANTRY_TRY(auto here, sys::Host::at("/"));
    if (here.exists(file)) return ConfigFile{std::move(here), std::move(file), named};
  }
  return ConfigFile{std::move(machine), std::move(file), named};
}

Result<config::LoadedSettings> load(const ConfigFile& file) {
  if (file.named) GANTRY_CHECK(file.host.info(file.path));
  return config::load_with_warnings(file.host, file.path);
}

void print_warnings(const config::LoadedSettings& loaded, const std::string& file,
                    const Context& context) {
  for (const auto& warning : loaded.warnings) {
    print_note(fmt::format("{}: {}", file, warning), context);
  }
}

void print_json(const std::vector<config::EffectiveValue>& values, const Context& context) {
  json::Writer out(json::Layout::Rows);
  out.array(values, [&](const config::EffectiveValue& value) {
    out.object([&] {
      out.member("schema", kFirstSchema);
      out.member("key", value.key->name);
      out.member("value", value.value);
      out.member("origin", to_string(value.origin));
    });
  });
  fmt::print(context.out, "{}\n", out.text());
}

Result<int> show(const ConfigOptions& options, const Context& context) {
  GANTRY_TRY(const auto file, find_file(options, context));
  GANTRY_TRY(const auto loaded, load(file));
  print_warnings(loaded, file.path, context);
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
               file.host.outside(file.path));
    return kOk;
  }
  Table table({"KEY", "VALUE", "FROM", "MEANING"});
  for (const auto& value : values) {
    table.add({std::string(value.key->name), value.value, std::string(to_string(value.origin)),
               std::string(value.key->meaning)});
  }
  fmt::print(context.out, "{}", table.text(context.width));
  return kOk;
}

struct CheckedFile {
  std::string path;  // as the caller sees it
  bool exists = false;
  bool unknown_keys = false;
  std::vector<std::string> notes;
};

Result<CheckedFile> check_file(const ConfigFile& file) {
  GANTRY_TRY(const auto loaded, load(file));
  auto copy = loaded.settings;
  GANTRY_CHECK(config::apply_environment(copy, config::process_environment));
  GANTRY_CHECK(config::check_mode(copy).in(file.path));
  CheckedFile checked{.path = file.host.outside(file.path),
                      .exists = file.host.exists(file.path),
                      .unknown_keys = !loaded.warnings.empty(),
                      .notes = loaded.warnings};
  for (const auto& word : config::describe_ignored_values(copy)) checked.notes.push_back(word);
  return checked;
}

void print_check_json(const Result<CheckedFile>& checked, const ConfigFile& file,
                      const Context& context) {
  json::Writer out(json::Layout::Indented);
  out.object([&] {
    out.member("schema", kFirstSchema);
    out.member("file", file.host.outside(file.path));
    out.member("exists", file.host.exists(file.path));
    out.member("valid", checked.ok());
    out.member("error", checked.ok() ? std::nullopt : std::optional(checked.error().text()));
    out.rows("notes", checked.ok() ? checked->notes : std::vector<std::string>(),
             [&](const std::string& note) { out.value(note); });
  });
  fmt::print(context.out, "{}\n", out.text());
}

Result<int> check(const ConfigOptions& options, const Context& context) {
  GANTRY_TRY(const auto file, find_file(options, context));
  const auto checked = check_file(file);
  if (context.json) {
    print_check_json(checked, file, context);
    return checked.ok() ? kOk : kProblem;
  }
  GANTRY_CHECK(checked);
  for (const auto& note : checked->notes) {
    print_note(fmt::format("{}: {}", checked->path, note), context);
  }
  fmt::print(context.out, "{}: {}\n", checked->path,
             !checked->exists        ? "does not exist; the defaults are used"
             : checked->unknown_keys ? "is valid, except for unknown keys"
                                     : "is valid");
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
  GANTRY_TRY(const auto file, find_file(options, context));
  auto text = file.host.read(file.path, config::kMaxConfigBytes);
  if (!text.ok() && text.error().code() != Errc::NotFound) return std::move(text).error();
  std::string content = text.ok() ? *std::move(text) : config::default_text(file.host);
  for (const auto& assignment : options.sets) {
    GANTRY_TRY(content, config::set_in_text(content, assignment));
  }
  GANTRY_TRY(const auto loaded, config::parse(content).in(file.path));
  if (!context.quiet) print_warnings(loaded, file.path, context);
  if (options.in_place) {
    GANTRY_CHECK(write_to(file.host, file.path, content));
  } else if (!options.output.empty()) {
    GANTRY_CHECK(write_to(file.host, options.output, content));
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
