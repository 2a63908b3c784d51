// SPDX-License-Identifier: Apache-2.0
// gantry cdi list: the devices that an engine can resolve, and why it cannot resolve the others.
#include "base/json/writer.hpp"
#include "container/cdi/registry.hpp"
#include "gantry/cdi.hpp"
#include "gantry/terminal.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

namespace gantry::cli {
namespace {

using cdi::Registry;

std::vector<std::string> directories(const std::vector<std::string>& asked) {
  return asked.empty() ? cdi::default_directories() : asked;
}

std::string json_text(const Registry& registry) {
  json::Writer out(json::Layout::Indented);
  const auto list = [&](std::string_view name, const auto& items, auto write) {
    items.empty() ? out.array(name, items, write) : out.rows(name, items, write);
  };
  out.object([&] {
    out.member("schema", kFirstSchema);
    list("devices", registry.devices(), [&](const auto& device) {
      out.object([&] {
        out.member("name", device.first);
        out.member("file", registry.files()[device.second.file].path);
      });
    });
    list("conflicts", registry.conflicts(), [&](const cdi::Conflict& conflict) {
      out.object([&] {
        out.member("name", conflict.name);
        out.array("files", std::array{conflict.first, conflict.second});
      });
    });
    list("refused", registry.rejected(), [&](const cdi::RejectedFile& file) {
      out.object([&] {
        out.member("file", file.path);
        out.member("why", file.why);
      });
    });
  });
  return out.text() + "\n";
}

void print_troubles(const Registry& registry, const Context& context) {
  std::string text;
  for (const auto& file : registry.rejected()) {
    text += fmt::format("{} is not loaded: {}\n", file.path, file.why);
  }
  for (const auto& conflict : registry.conflicts()) {
    text += fmt::format("{} is defined by {} and {}: engines use neither. Remove one.\n",
                        conflict.name, conflict.first, conflict.second);
  }
  fmt::print(context.err, "{}", wrap_lines(text, terminal_width(context.raw_err)));
}

void print_names(const Registry& registry, Context& context) {
  for (const auto& [name, place] : registry.devices()) fmt::print(context.out, "{}\n", name);
}

Result<int> list_devices(const std::vector<std::string>& asked, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  const auto registry = Registry::load(host, directories(asked));
  if (context.json) {
    fmt::print(context.out, "{}", json_text(registry));
  } else {
    print_names(registry, context);
  }
  print_troubles(registry, context);
  if (registry.files().empty() && registry.rejected().empty()) {
    fmt::print(context.err, "There are no specifications in {}.\n",
               fmt::join(directories(asked), " or "));
  }
  return registry.rejected().empty() && registry.conflicts().empty() ? kOk : kProblem;
}

// In NVIDIA's tool, problems are warnings and do not change the exit status.
Result<int> ctk_list(const std::vector<std::string>& asked, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  const auto registry = Registry::load(host, directories(asked));
  if (!context.quiet) {
    print_troubles(registry, context);
    fmt::print(context.err, "Found {} CDI devices\n", registry.devices().size());
  }
  print_names(registry, context);
  return kOk;
}

}  // namespace

void add_cdi_list(CLI::App& cdi, Context& context, Action& chosen) {
  auto asked = std::make_shared<std::vector<std::string>>();
  auto* command = cdi.add_subcommand("list", "The devices that an engine can resolve");
  add_machine_options(*command, context);
  command
      ->add_option("--spec-dir", *asked, "Directory to search (may be repeated; a later one wins)")
      ->type_name("DIR")
      ->transform(absolute_path());
  add_examples(*command, "  gantry cdi list\n  gantry cdi list --json | jq -r '.devices[].name'\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return list_devices(*asked, c); }; });
}

void add_ctk_cdi_list(CLI::App& cdi, Context& /*context*/, Action& chosen) {
  auto asked = std::make_shared<std::vector<std::string>>();
  auto* command = cdi.add_subcommand("list", "The devices that an engine can resolve");
  command->add_option("--spec-dir", *asked, "Directory to search (may be repeated)")
      ->type_name("DIR")
      ->transform(absolute_path())
      ->delimiter(',')
      ->envname("NVIDIA_CTK_CDI_SPEC_DIRS");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return ctk_list(*asked, c); }; });
}

}  // namespace gantry::cli
