// SPDX-License-Identifier: Apache-2.0
// gantry doctor: says what is wrong with this machine's GPUs, why, and which command helps.
#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "doctor/checks/all_checks.hpp"
#include "doctor/engine/report.hpp"
#include "gantry/commands.hpp"
#include "gantry/doctor_cluster.hpp"
#include "gantry/doctor_shares.hpp"
#include "gantry/terminal.hpp"
#include "gpu/probe/snapshot.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <array>
#include <memory>

namespace gantry::cli {
namespace {

struct DoctorOptions {
  doctor::CheckSelection selection;
  std::string explain;
  bool list = false;
  bool all = false;
  bool markdown = false;
  bool fix = false;
  std::string fix_names;  // "a,b"
  double deadline_seconds = 10;
  ClusterFlags cluster;
};

int list_checks(const DoctorOptions& options, const Context& context) {
  const auto text = options.markdown ? doctor::list_markdown(doctor::all_checks())
                    : context.json   ? doctor::list_json(doctor::all_checks())
                                     : doctor::list_text(doctor::all_checks());
  fmt::print(context.out, "{}", text);
  return kOk;
}

int explain_check(const DoctorOptions& options, const Context& context) {
  const auto checks = doctor::select(doctor::all_checks(), {.only = {options.explain}, .skip = {}});
  if (!checks.ok()) {
    fmt::print(context.err, "gantry doctor: {}\n", checks.error().text());
    return kUsage;
  }
  if (context.json) {
    fmt::print(context.out, "{}", doctor::list_json(*checks));
    return kOk;
  }
  for (const auto* check : *checks) {
    fmt::print(context.out, "{}{}", check == checks->front() ? "" : "\n",
               doctor::explain_text(*check, {.width = context.width}));
  }
  return kOk;
}

bool confirm_fix(const doctor::CheckResult& outcome, const std::vector<doctor::Action>& actions) {
  fmt::print(stderr, "{}: {}\n  this would:\n", outcome.check->id,
             printable_lines(outcome.finding.summary));
  for (const auto& action : actions)
    fmt::print(stderr, "    {}\n", printable_lines(doctor::describe(action)));
  fmt::print(stderr, "  Do this for {}? [y/N] ", outcome.check->id);
  std::array<char, 64> answer{};
  if (std::fgets(answer.data(), answer.size(), stdin) == nullptr) return false;
  return trim(answer.data()) == "y" || trim(answer.data()) == "yes";
}

doctor::FixOptions fix_options(const DoctorOptions& options, const Context& context) {
  doctor::FixOptions fix;
  for (auto name : split(options.fix_names, ',')) fix.named.emplace_back(trim(name));
  const bool person = !context.json && ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1;
  if (person) fix.ask = confirm_fix;
  return fix;
}

void print_report(const DoctorOptions& options, const Context& context,
                  const doctor::RepairReport& repair, const doctor::Facts& facts) {
  if (context.json) {
    fmt::print(context.out, "{}",
               doctor::report_json(repair.outcomes, repair.fixes, facts.guest()));
    return;
  }
  // Checks that the user named are shown whatever their result.
  const bool all = options.all || !options.selection.only.empty();
  const doctor::Style style{.color = context.color,
                            .width = context.width,
                            .detail = all ? doctor::Detail::All : doctor::Detail::Findings};
  auto* const out = context.painted_out();
  if (options.fix) fmt::print(out, "{}", doctor::fixes_text(repair.fixes, style));
  fmt::print(out, "{}", doctor::report_text(repair.outcomes, style));
  fmt::print(context.out, "{}", doctor::describe_unreadable(repair.outcomes, facts.host()));
  if (!options.fix && doctor::has_safe_fix(repair.outcomes)) {
    fmt::print(context.out, "Safe remedies can be applied: sudo {}\n",
               doctor::fix_command(facts.host(), ""));
  }
  if (facts.gpu_functions().empty() && facts.inventory().gpus.empty()) {
    fmt::print(context.out,
               "To try Gantry without a GPU, create a simulated machine:\n"
               "  gantry sim create h200 --root /tmp/h200 && gantry doctor --root /tmp/h200\n");
  }
}

Result<int> examine(const DoctorOptions& options, const Context& context) {
  const auto checks = doctor::select(doctor::all_checks(), options.selection);
  const auto named = doctor::select(doctor::all_checks(),
                                    {.only = fix_options(options, context).named, .skip = {}});
  for (const auto* wrong : {&checks, &named}) {
    if (wrong->ok()) continue;
    fmt::print(context.err, "gantry doctor: {}\n", wrong->error().text());
    return kUsage;
  }
  GANTRY_TRY(const auto host, open_host(context));
  probe::SnapshotOptions how;
  how.deadline = std::chrono::milliseconds(static_cast<long>(options.deadline_seconds * 1000));
  GANTRY_TRY(auto inventory, while_waiting(context, [&] { return probe::snapshot(host, how); }));
  const auto kernel = sys::real_kernel();
  auto sources = doctor::live_sources(host);
  sources.this_machine = kernel->is_this_machine(host);
  sources.cluster = query_cluster(options.cluster, host, *checks);
  sources.shares = query_share_daemon(host, *checks);
  doctor::RepairReport repair;
  if (options.fix) {
    // If reading the machine fails after a change, show its last known state.
    const auto look = [&] {
      auto seen = probe::snapshot(host, how);
      if (seen.ok()) inventory = *std::move(seen);
      return inventory;
    };
    repair = doctor::repair(host, look, sources, *checks, fix_options(options, context), *kernel);
  }
  const doctor::Facts facts(host, inventory, sources);
  if (!options.fix) repair.outcomes = doctor::run_checks(facts, *checks);
  print_report(options, context, repair, facts);
  return doctor::count(repair.outcomes).fail == 0 ? kOk : kProblem;
}

Result<int> run_doctor(const DoctorOptions& options, const Context& context) {
  if (options.list) return list_checks(options, context);
  if (!options.explain.empty()) return explain_check(options, context);
  return examine(options, context);
}

}  // namespace

void add_doctor(CLI::App& app, Context& context, Action& chosen) {
  auto options = std::make_shared<DoctorOptions>();
  auto* command =
      app.add_subcommand("doctor", "Say what is wrong with this machine's GPUs and why");
  add_machine_options(*command, context);
  command
      ->add_option("--only", options->selection.only,
                   "Run only these checks: ids, patterns or numbers (H15)")
      ->delimiter(',')
      ->type_name("ID,...");
  command->add_option("--skip", options->selection.skip, "Skip these checks")
      ->delimiter(',')
      ->type_name("ID,...");
  command->add_option("--explain", options->explain, "Explain one check")->type_name("ID");
  command->add_flag("--all", options->all, "Also show checks that passed or were skipped");
  auto* list = command->add_flag("--list", options->list, "List all checks");
  command
      ->add_flag("--markdown", options->markdown, "With --list: print the table of docs/doctor.md")
      ->needs(list);
  command->add_option("--deadline", options->deadline_seconds, "Seconds to wait for NVML")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();
  command->add_option("--kubeconfig", options->cluster.kubeconfig, "Kubeconfig file")
      ->type_name("FILE")
      ->transform(absolute_path());
  command->add_option("--node-name", options->cluster.node,
                      "This node's name (default: the host's name)");
  auto* fix = command
                  ->add_option("--fix", options->fix_names,
                               "Apply safe remedies; risky ones only if named or confirmed")
                  ->expected(0, 1)
                  ->type_name("[ID,...]");
  add_examples(*command,
               "  gantry doctor                        # only look, change nothing\n"
               "  gantry doctor --all                  # also what passed or was skipped\n"
               "  gantry doctor --explain numa.unknown\n"
               "  sudo gantry doctor --fix             # make nodes, load modules\n"
               "  sudo gantry doctor --fix=persistence.off\n"
               "  gantry doctor --only 'cluster.*','kubelet.*' --kubeconfig ~/.kube/config\n"
               "  gantry doctor --json --only 'node.*'");
  command->callback([options, fix, &chosen] {
    options->fix = fix->count() > 0;
    chosen = [options](Context& ctx) { return run_doctor(*options, ctx); };
  });
}

}  // namespace gantry::cli
