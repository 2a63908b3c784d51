// SPDX-License-Identifier: Apache-2.0
// gantry cdi generate: the machine's CDI specification, to a file or to see.
#include "cdi/registry.hpp"
#include "cdi/write_spec.hpp"
#include "driver/files.hpp"
#include "gantry/cdi.hpp"
#include "gantry/cdi_options.hpp"
#include "gantry/words.hpp"
#include "prepared/publish.hpp"
#include "probe/snapshot.hpp"
#include "refresh/spec.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cerrno>
#include <filesystem>

namespace gantry::cli {
namespace {

struct GenerateOptions {
  SpecFlags spec;
  std::string output;
  std::string format;
  bool verbose = false;
  Deadline deadline;
};

Result<cdi::Format> format_of(const GenerateOptions& options) {
  if (options.format == "json") return cdi::Format::Json;
  if (options.format == "yaml") return cdi::Format::Yaml;
  if (options.format.empty()) return cdi::format_of(options.output);
  return Error(Errc::Invalid, fmt::format("--format {}: there are yaml and json", options.format));
}

probe::SnapshotOptions how(const GenerateOptions& options) {
  return {.deadline = options.deadline.duration(),
          .nvml = options.spec.mode == "nvml" ? probe::UseNvml::Use : probe::UseNvml::ForMig};
}

// What the specification mounts must be there when it is used. Who may only look is told so.
Result<std::vector<std::string>> prepare(const sys::Host& host, const model::Inventory& machine) {
  const auto published = prepared::publish(host, machine);
  if (published.ok()) return std::vector<std::string>{};
  const int err = published.error().sys_errno();
  if (err != EACCES && err != EPERM && err != EROFS) return published.error();
  return std::vector{
      fmt::format("the driver's files could not be prepared ({}); run `gantry cdi "
                  "refresh` as root before this specification is used",
                  published.error().text())};
}

void print_missing(const sys::Host& host, const Context& context) {
  const auto root = driver::find_root(host);
  const auto files = driver::find_files(host, root);
  for (const auto& file : driver::missing(files, root)) {
    fmt::print(context.err, "Not found: {} ({})\n", file.name, kind_word(file.kind));
  }
}

// The file that was named, whoever wrote it before; but not a second one of the same devices in one
// directory without a word.
Result<std::vector<std::string>> write(const std::string& output, const cdi::Spec& spec,
                                       cdi::Format format) {
  std::error_code failed;
  const auto path = std::filesystem::absolute(output, failed).string();
  if (failed) return Error::sys(failed.value(), output);
  GANTRY_TRY(const auto host, sys::Host::at("/"));
  GANTRY_TRY(const auto written,
             cdi::write_spec(host, path, spec, {.others = cdi::Others::Ignore, .format = format}));
  std::vector<std::string> notes;
  const auto directory = path.substr(0, path.rfind('/'));
  const auto registry = cdi::Registry::load(host, {directory});
  if (!registry.conflicts().empty()) {
    const auto& conflict = registry.conflicts().front();
    notes.push_back(fmt::format("{} and {} both have {}: engines take neither; remove one of them",
                                conflict.first, conflict.second, conflict.name));
  }
  return notes;
}

bool mounts_driver(refresh::SpecKind kind) {
  return kind == refresh::SpecKind::Gpu || kind == refresh::SpecKind::Management;
}

Result<int> generate(const GenerateOptions& options, Context& context) {
  apply_driver_root(options.spec, context);
  GANTRY_TRY(const auto format, format_of(options));
  GANTRY_TRY(const auto host, open_host(context));
  GANTRY_TRY(const auto spec_how, spec_options(options.spec, host));
  GANTRY_TRY(const auto machine, probe::snapshot(host, how(options)));
  GANTRY_TRY(const auto made, refresh::make_spec(machine, spec_how));
  if (mounts_driver(spec_how.kind)) {
    GANTRY_TRY(const auto notes, prepare(host, machine));
    print_notes(notes, context);
  }
  if (options.output.empty() || options.output == "-") {
    fmt::print(context.out, "{}", cdi::to_text(made.spec, format));
  } else {
    GANTRY_TRY(const auto notes, write(options.output, made.spec, format));
    print_notes(notes, context);
  }
  print_notes(made.notes, context);
  if (options.verbose) print_missing(host, context);
  return kOk;
}

}  // namespace

void add_cdi_generate(CLI::App& cdi, Context& context, Action& chosen) {
  auto options = std::make_shared<GenerateOptions>();
  auto* command = cdi.add_subcommand("generate", "Write this machine's CDI specification");
  add_root_option(*command, context);
  command->add_option("-o,--output", options->output, "File to write; nothing or - for stdout")
      ->type_name("FILE")
      ->envname("NVIDIA_CTK_CDI_OUTPUT_FILE_PATH");
  command
      ->add_option("--format", options->format,
                   "yaml or json (default: by the file's name, else yaml)")
      ->type_name("FORMAT")
      ->envname("NVIDIA_CTK_CDI_GENERATE_OUTPUT_FORMAT");
  add_spec_flags(*command, options->spec);
  add_deadline(*command, options->deadline);
  command->add_flag("--verbose", options->verbose,
                    "Also say which files were looked for and not found");
  add_examples(*command,
               "  gantry cdi generate                                      # to see it\n"
               "  gantry cdi generate --output /etc/cdi/nvidia.yaml\n"
               "  gantry cdi generate --device-id 0,1:2 --capabilities compute,utility\n"
               "  gantry cdi generate --mode imex\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return generate(*options, c); }; });
}

}  // namespace gantry::cli
