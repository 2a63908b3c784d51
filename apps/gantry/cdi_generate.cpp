// SPDX-License-Identifier: Apache-2.0
// gantry cdi generate: writes the machine's CDI specification to a file or to standard output.
#include "container/cdi/registry.hpp"
#include "container/cdi/write_spec.hpp"
#include "container/driver_dir/publish.hpp"
#include "container/publish/generate_spec.hpp"
#include "gantry/cdi.hpp"
#include "gantry/cdi_options.hpp"
#include "gantry/format_values.hpp"
#include "gantry/terminal.hpp"
#include "gpu/driver/files.hpp"
#include "gpu/probe/snapshot.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cerrno>
#include <optional>

namespace gantry::cli {
namespace {

struct GenerateOptions {
  SpecFlags spec;
  std::string output;
  std::string format;
  bool verbose = false;
  bool take_over = false;
  cdi::ExistingSpecPolicy others = cdi::ExistingSpecPolicy::Refuse;  // without --take-over
  Deadline deadline;
};

Result<cdi::Format> format_of(const GenerateOptions& options) {
  if (options.format == "json") return cdi::Format::Json;
  if (options.format == "yaml") return cdi::Format::Yaml;
  if (options.format.empty()) return cdi::format_of(options.output);
  return Error(Errc::Invalid, fmt::format("--format {}: use yaml or json", options.format));
}

probe::SnapshotOptions how(const GenerateOptions& options, const SpecMachine& machine) {
  return {.deadline = options.deadline.duration(),
          .nvml = options.spec.mode == "nvml" ? probe::NvmlUse::Use : probe::NvmlUse::ForMig,
          .driver = machine.driver};
}

// The files that the specification mounts must exist when it is used. A caller without permission
// to prepare them gets a note.
Result<std::vector<std::string>> prepare(const sys::Host& host, const model::Inventory& machine) {
  const auto published = driver_dir::publish(host, machine);
  if (published.ok()) return std::vector<std::string>{};
  const int err = published.error().sys_errno();
  if (err != EACCES && err != EPERM && err != EROFS) return published.error();
  return std::vector{
      fmt::format("the driver's files could not be prepared ({}); run `gantry cdi "
                  "refresh` as root before this specification is used",
                  published.error().text())};
}

void print_missing(const SpecMachine& machine, const Context& context) {
  const auto root =
      driver::find_root(machine.host, std::nullopt, driver::kLoaderCache, machine.driver);
  const auto files = driver::find_files(machine.host, root);
  for (const auto& file : driver::missing_files(files, root)) {
    fmt::print(context.err, "Not found: {} ({})\n", file.name, format_file_kind(file.kind));
  }
}

// In a directory that no engine reads, a second specification does no harm. Say so anyway if two
// files define the same devices: an engine may be configured to read this directory.
std::vector<std::string> notes_on_directory(const sys::Host& host, const std::string& path) {
  const auto directory = path.substr(0, path.rfind('/'));
  const auto registry = cdi::Registry::load(host, {directory});
  if (registry.conflicts().empty()) return {};
  const auto& conflict = registry.conflicts().front();
  return {
      fmt::format("{} and {} both define {}: an engine that reads this directory uses neither; "
                  "remove one of them",
                  host.outside(conflict.first), host.outside(conflict.second), conflict.name)};
}

Status write(const GenerateOptions& options, const sys::Host& machine, const cdi::Spec& spec,
             cdi::Format format, const Context& context) {
  GANTRY_TRY(const auto place, locate_spec(options.output, machine));
  const auto& host = place.host ? *place.host : machine;
  const auto others = options.take_over ? cdi::ExistingSpecPolicy::TakeOver : options.others;
  GANTRY_TRY(const auto written,
             cdi::write_spec(host, place.path, spec, {.others = others, .format = format}));
  print_notes(written.notes, context);
  for (const auto& file : written.moved) {
    const auto name = host.outside(file);
    print_notes({fmt::format("{} was renamed to {}.before-gantry", name, name)}, context);
  }
  print_notes(notes_on_directory(host, place.path), context);
  return {};
}

bool mounts_driver(publish::SpecKind kind) {
  return kind == publish::SpecKind::Gpu || kind == publish::SpecKind::Management;
}

Result<int> generate(const GenerateOptions& options, Context& context) {
  GANTRY_TRY(const auto format, format_of(options));
  GANTRY_TRY(const auto place, open_machine(options.spec, context));
  const auto& host = place.host;
  GANTRY_TRY(const auto spec_how, spec_options(options.spec, place));
  GANTRY_TRY(const auto machine,
             while_waiting(context, [&] { return probe::snapshot(host, how(options, place)); }));
  GANTRY_TRY(const auto made, publish::generate_spec(machine, spec_how));
  if (mounts_driver(spec_how.kind)) {
    GANTRY_TRY(const auto notes, prepare(host, machine));
    print_notes(notes, context);
  }
  if (options.output.empty() || options.output == "-") {
    fmt::print(context.out, "{}", cdi::to_text_with_marker(made.spec, format));
  } else {
    GANTRY_CHECK(write(options, host, made.spec, format, context));
  }
  print_notes(made.notes, context);
  if (options.verbose) print_missing(place, context);
  return kOk;
}

CLI::App* add_generate(CLI::App& cdi, Context& context,
                       const std::shared_ptr<GenerateOptions>& options, Action& chosen) {
  auto* command = cdi.add_subcommand("generate", "Write this machine's CDI specification");
  add_root_option(*command, context);
  command
      ->add_option("-o,--output", options->output,
                   "File to write, not relative to --root; empty or - writes to stdout")
      ->type_name("FILE")
      ->envname("NVIDIA_CTK_CDI_OUTPUT_FILE_PATH");
  command
      ->add_option("--format", options->format,
                   "yaml or json (default: by the file's name, else yaml)")
      ->type_name("FORMAT")
      ->envname("NVIDIA_CTK_CDI_GENERATE_OUTPUT_FORMAT");
  add_take_over(*command, options->take_over);
  add_spec_flags(*command, options->spec);
  add_deadline(*command, options->deadline);
  command->add_flag("--verbose", options->verbose, "Also list the files that were not found");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return generate(*options, c); }; });
  return command;
}

}  // namespace

void add_cdi_generate(CLI::App& cdi, Context& context, Action& chosen) {
  auto* command = add_generate(cdi, context, std::make_shared<GenerateOptions>(), chosen);
  add_examples(*command,
               "  gantry cdi generate                                      # print it\n"
               "  gantry cdi generate --output /etc/cdi/nvidia.yaml\n"
               "  gantry cdi generate --device-id 0,1:2 --capabilities compute,utility\n"
               "  gantry cdi generate --mode imex\n");
}

// NVIDIA's tool replaces the named file, and units and scripts rely on that. So does this command,
// but it keeps the old file.
void add_ctk_cdi_generate(CLI::App& cdi, Context& context, Action& chosen) {
  auto options = std::make_shared<GenerateOptions>();
  options->others = cdi::ExistingSpecPolicy::TakeOverTarget;
  auto* command = add_generate(cdi, context, options, chosen);
  add_examples(*command,
               "  nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml\n"
               "  nvidia-ctk cdi generate --device-name-strategy=uuid --format=json\n");
}

}  // namespace gantry::cli
