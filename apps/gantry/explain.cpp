// SPDX-License-Identifier: Apache-2.0
// gantry explain: shows what a container requested, what it gets, and why; or why Gantry never
// writes new_id. Changes nothing.
#include "base/core/printable.hpp"
#include "base/json/writer.hpp"
#include "container/oci/container.hpp"
#include "container/runtime/injection/find_bundle.hpp"
#include "container/runtime/injection/injection.hpp"
#include "container/runtime/injection/load_settings.hpp"
#include "container/runtime/shim/config_file.hpp"
#include "gantry/commands.hpp"
#include "gantry/explain_text.hpp"
#include "gantry/vfio_commands.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <filesystem>

namespace gantry::cli {
namespace {

// Shows what would happen if the container were created now; failures are part of the answer.
Explanation foresee(const oci::Container& container, const sys::Host& host,
                    const config::Settings& settings) {
  Explanation explanation;
  auto& record = explanation.record;
  const auto no_refresh = []() -> Status {
    return Error(Errc::Denied, "`gantry explain` changes nothing, so it did not refresh");
  };
  runtime::Injector injector({host, settings, no_refresh});
  auto decision = injector.decide(container);
  if (!decision.ok()) {
    explanation.failure = decision.error().text();
    return explanation;
  }
  record.asked = decision->asked;
  record.decided = decision->reasons;
  record.notes = decision->warnings;
  const auto injection = injector.plan(*std::move(decision), container);
  if (!injection.ok()) {
    explanation.failure = injection.error().text();
    return explanation;
  }
  record.notes = injection->decision.warnings;
  record.edits = injection->edits;
  if (!record.edits.empty()) record.flavour = runtime::to_string(injection->flavour);
  record.notes.insert(record.notes.end(), injection->notes.begin(), injection->notes.end());
  return explanation;
}

// For a container that exists: the runtime's record of it, or the NVIDIA entries of its
// config.json.
Explanation look_back(const runtime::FoundBundle& found, const oci::Container& container,
                      const json::Document& config, const sys::Host& host) {
  Explanation explanation{.created = true};
  auto record = runtime::read_container_record(host, found.id);
  if (record.ok()) {
    explanation.record = *std::move(record);
    return explanation;
  }
  explanation.record = record_from_config(config, container);
  explanation.record.notes.emplace_back(
      "gantry-runtime has no record of this container: another runtime created it, or it was "
      "created from a CDI specification or before a reboot; this is the content of its "
      "config.json");
  return explanation;
}

Result<Explanation> explain_bundle(const runtime::FoundBundle& found, const sys::Host& host,
                                   const config::Settings& settings) {
  GANTRY_TRY(const auto file, runtime::ConfigFile::read(found.bundle + "/config.json"));
  GANTRY_TRY(const auto container,
             oci::parse_container(file.document(), settings.gantry.pod_cgroups).in(file.path()));
  // After an injection the variable is set to void, so that no other tool injects again.
  const bool injected = container.variable("NVIDIA_CTK_LIBCUDA_DIR").has_value() ||
                        !record_from_config(file.document(), container).edits.nodes.empty();
  auto explanation = injected || !found.id.empty()
                         ? look_back(found, container, file.document(), host)
                         : foresee(container, host, settings);
  if (!injected && explanation.record.asked.empty() && explanation.failure.empty()) {
    explanation = foresee(container, host, settings);
  }
  if (explanation.record.id.empty()) explanation.record.id = found.id;
  explanation.record.bundle = found.bundle;
  return explanation;
}

struct ExplainOptions {
  std::string container;
};

Result<int> explain_container(const ExplainOptions& options, Context& context) {
  auto environment = [&](std::string_view name) -> std::optional<std::string> {
    if (name == "GANTRY_ROOT") return context.root;
    return config::process_environment(name);
  };
  GANTRY_TRY(const auto settings, runtime::load_settings(environment));
  GANTRY_TRY(const auto host, sys::Host::at(runtime::shim_root(settings)));
  // Engines keep their state on the machine that runs this program, even if --root names another
  // one.
  GANTRY_TRY(const auto engines, sys::Host::at("/"));
  auto name = options.container;
  std::error_code ignored;
  if (std::filesystem::exists(name + "/config.json", ignored) || name.find('/') != name.npos) {
    name = std::filesystem::absolute(name, ignored).lexically_normal().string();
  }
  runtime::FoundBundle found;
  if (const auto record = runtime::read_container_record(host, name); record.ok()) {
    found = {.id = record->id, .bundle = record->bundle};
  } else {
    GANTRY_TRY(found, runtime::find_bundle(engines, name));
  }
  GANTRY_TRY(auto explanation, explain_bundle(found, host, settings));
  if (!explanation.record.asked.empty()) {
    const auto words = config::describe_ignored_values(settings);
    auto& notes = explanation.record.notes;
    notes.insert(notes.end(), words.begin(), words.end());
  }
  fmt::print(context.out, "{}",
             context.json ? explanation_json(explanation)
                          : printable_lines(explanation_text(explanation, context.columns)));
  return explanation.failure.empty() ? kOk : kProblem;
}

// A file of the kernel that people's notes write, and Gantry does not.
constexpr std::string_view kNewId = "new_id";

Result<int> explain_new_id(const Context& context) {
  if (context.json) {
    json::Writer out(json::Layout::Indented);
    out.object([&] {
      out.member("schema", kFirstSchema);
      out.member("topic", kNewId);
      out.member("text", why_driver_override());
    });
    fmt::print(context.out, "{}\n", out.text());
    return kOk;
  }
  fmt::print(context.out, "{}", why_driver_override());
  return kOk;
}

}  // namespace

void add_explain(CLI::App& app, Context& context, Action& chosen) {
  auto options = std::make_shared<ExplainOptions>();
  auto* command = app.add_subcommand("explain", "Why a container has the GPUs it has, or none");
  add_machine_options(*command, context);
  command
      ->add_option("container", options->container,
                   "A bundle's directory, a container's id or name, or the word new_id")
      ->required()
      ->type_name("BUNDLE|CONTAINER|new_id");
  add_examples(*command,
               "  gantry explain web                # a container of docker or podman\n"
               "  gantry explain 3f2a --json        # by the first characters of its id\n"
               "  gantry explain ./bundle           # before it is created\n"
               "  gantry explain new_id             # why no GPU is bound with it\n");
  command->callback([=, &chosen] {
    chosen = [=](Context& c) {
      return options->container == kNewId ? explain_new_id(c) : explain_container(*options, c);
    };
  });
}

}  // namespace gantry::cli
