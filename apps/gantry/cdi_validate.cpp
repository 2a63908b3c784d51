// SPDX-License-Identifier: Apache-2.0
// gantry cdi validate: says whether an engine would load these files, and why not.
#include "container/cdi/read.hpp"
#include "container/cdi/registry.hpp"
#include "container/cdi/validate.hpp"
#include "gantry/cdi.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace gantry::cli {
namespace {

void print_good(const std::string& file, const cdi::Spec& spec, Context& context) {
  fmt::print(context.out, "{}: valid; {}, CDI {}, {} device{}\n", file, spec.kind, spec.version,
             spec.devices.size(), spec.devices.size() == 1 ? "" : "s");
}

// Reports every problem of the file, not only the first.
bool validate_file(const std::string& file, Context& context) {
  const auto text = read_spec_text(file);
  const auto spec = text.ok() ? cdi::parse_spec(*text, file) : Result<cdi::Spec>(text.error());
  if (!spec.ok()) {
    fmt::print(context.err, "{}\n", spec.error().text());
    return false;
  }
  const auto problems = cdi::validate(*spec);
  for (const auto& problem : problems) fmt::print(context.err, "{}: {}\n", file, problem);
  if (problems.empty()) print_good(file, *spec, context);
  return problems.empty();
}

Result<int> validate_machine(Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  const auto registry = cdi::Registry::load(host);
  for (const auto& file : registry.files()) print_good(file.path, file.spec, context);
  for (const auto& file : registry.rejected()) fmt::print(context.err, "{}\n", file.why);
  for (const auto& conflict : registry.conflicts()) {
    fmt::print(context.err, "{} and {} both define {}: engines use neither\n", conflict.first,
               conflict.second, conflict.name);
  }
  if (registry.files().empty() && registry.rejected().empty()) {
    fmt::print(context.out, "There are no specifications in /etc/cdi or /var/run/cdi.\n");
  }
  return registry.rejected().empty() && registry.conflicts().empty() ? kOk : kProblem;
}

Result<int> validate(const std::vector<std::string>& files, Context& context) {
  if (files.empty()) return validate_machine(context);
  int status = kOk;
  for (const auto& file : files) {
    if (!validate_file(file, context)) status = kProblem;
  }
  return status;
}

}  // namespace

void add_cdi_validate(CLI::App& cdi, Context& context, Action& chosen) {
  auto files = std::make_shared<std::vector<std::string>>();
  auto* command = cdi.add_subcommand(
      "validate", "Check whether engines would load these files, and say why not");
  command->add_option("file", *files, "Files; - is standard input (default: the machine's files)")
      ->type_name("FILE...");
  command
      ->add_option("--root", context.root,
                   "The machine below this directory (environment: GANTRY_ROOT)")
      ->type_name("DIR");
  add_examples(*command, "  gantry cdi validate\n  gantry cdi validate /etc/cdi/nvidia.yaml\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return validate(*files, c); }; });
}

}  // namespace gantry::cli
