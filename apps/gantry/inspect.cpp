// SPDX-License-Identifier: Apache-2.0
// gantry inspect: shows which pod uses how much of each shared GPU of the cluster. Also
// kubectl-inspect-gpushare.
#include "gantry/inspect.hpp"

#include "cluster/report/report.hpp"
#include "cluster/scheduler/cluster_snapshot.hpp"
#include "gantry/commands.hpp"
#include "gantry/terminal.hpp"
#include "net/kube/api.hpp"
#include "net/kube/client_config.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::cli {
namespace {

enum class InspectName : std::uint8_t { Gantry, Gpushare };

struct InspectFlags {
  std::string node;
  std::string output;
  std::string kubeconfig;
  bool details = false;
};

Error nothing_shared(const InspectFlags& flags) {
  if (!flags.node.empty())
    return {Errc::NotFound,
            fmt::format("{} does not share GPUs; leave out the name to see all nodes that do. To "
                        "share its GPUs: kubectl label node {} gpushare=true",
                        flags.node, flags.node)};
  return {Errc::NotFound,
          "no node of this cluster shares its GPUs. To share GPUs: kubectl apply -k "
          "deploy/gpushare, then kubectl label node NODE gpushare=true"};
}

std::string shown(report::Views views, const InspectFlags& flags, InspectName called_as,
                  const Context& context) {
  if (context.json || flags.output == "json") return report::to_json(views);
  if (flags.details) return report::details(views);
  if (flags.output == "wide") return report::wide(views);
  const bool bars = flags.output == "bars" ||
                    (flags.output.empty() && called_as == InspectName::Gantry && context.color);
  if (!bars) return report::summary(views);
  return report::bars(views, context.color ? report::ColorMode::Colors : report::ColorMode::Plain);
}

Result<int> inspect_cluster(const InspectFlags& flags, InspectName called_as, Context& context) {
  GANTRY_TRY(auto access, kube::find_client_config(flags.kubeconfig, kube::Caller::Person));
  kube::Api api(std::move(access));
  GANTRY_TRY(
      const auto survey,
      scheduler::read_cluster([&](const std::string& path) { return api.get(path); }, flags.node));
  for (const auto& note : survey.notes) fmt::print(context.err, "left out: {}\n", note);
  const auto views = survey.views();
  const bool json = context.json || flags.output == "json";
  if (views.empty() && !json) return nothing_shared(flags);
  // gpushare's own command keeps gpushare's lines; `-o wide` is wide, as kubectl's is.
  const bool whole_lines = json || called_as == InspectName::Gpushare || flags.output == "wide";
  const auto width = whole_lines ? 0 : context.columns;
  fmt::print(context.painted_out(), "{}",
             wrap_lines(shown(views, flags, called_as, context), width));
  return kOk;
}

void add_inspect_options(CLI::App& command, const std::shared_ptr<InspectFlags>& flags,
                         Context& context) {
  command.add_option("NODE", flags->node, "Show only this node");
  command.add_flag("-d,--details", flags->details,
                   "Show a table for each node, with a line for each pod");
  command.add_option("-o,--output", flags->output, "table, wide, bars or json")
      ->check(CLI::IsMember({"table", "wide", "bars", "json"}).description(""))
      ->type_name("FORMAT");
  command.add_flag("--json", context.json, "Print JSON, as the extender's inspect endpoint does");
  command
      .add_option("--kubeconfig", flags->kubeconfig, "Kubeconfig file (environment: KUBECONFIG)")
      ->type_name("FILE")
      ->transform(absolute_path());
  add_examples(
      command,
      "  gantry inspect                  # bars in a terminal, gpushare's table elsewhere\n"
      "  gantry inspect -d gpu-node      # one node, pod by pod\n"
      "  gantry inspect -o wide          # UUID, model, exact amounts\n"
      "  kubectl inspect gpushare        # gpushare's own command, the same tables\n");
}

// Go also accepts --d and -d=true, and its log package has more flags.
std::vector<std::string> go_flags(int argc, char** argv) {
  std::vector<std::string> kept;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--d" || flag == "-d=true" || flag == "--d=true") {
      kept.emplace_back("-d");
    } else if (flag == "-v" || flag == "--v" || flag == "-stderrthreshold") {
      ++i;  // its value
    } else if (!flag.starts_with("-v=") && !flag.starts_with("--v=") &&
               flag.find("logtostderr") == std::string_view::npos && flag != "-d=false") {
      kept.emplace_back(flag);
    }
  }
  return kept;
}

}  // namespace

void add_inspect(CLI::App& app, Context& context, Action& chosen) {
  auto flags = std::make_shared<InspectFlags>();
  auto* command = app.add_subcommand(
      "inspect", "The cluster's shared GPUs: used and total memory, and what each pod uses");
  add_inspect_options(*command, flags, context);
  command->callback([=, &chosen] {
    chosen = [=](Context& c) { return inspect_cluster(*flags, InspectName::Gantry, c); };
  });
}

int inspect_gpushare(int argc, char** argv, std::FILE* out, std::FILE* err) {
  Context context = context_of_process(out, err);
  CLI::App app("gpushare's command, answered by gantry.", "kubectl inspect");
  auto flags = std::make_shared<InspectFlags>();
  auto* command =
      app.add_subcommand("gpushare", "Shared GPUs of the cluster, in gpushare's tables");
  add_inspect_options(*command, flags, context);
  const Action chosen = [=](Context& c) {
    return inspect_cluster(*flags, InspectName::Gpushare, c);
  };
  auto kept = go_flags(argc, argv);
  std::string name = "gpushare";
  std::vector<char*> arguments{argv[0], name.data()};
  for (auto& one : kept) arguments.push_back(one.data());
  arguments.push_back(nullptr);
  return run_program(app, static_cast<int>(arguments.size()) - 1, arguments.data(), context,
                     chosen);
}

}  // namespace gantry::cli
