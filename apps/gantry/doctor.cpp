// SPDX-License-Identifier: Apache-2.0
// gantry doctor: what is wrong with this machine's GPUs, why, and what to type.
#include "base/text.hpp"
#include "doctor/report.hpp"
#include "gantry/commands.hpp"
#include "probe/snapshot.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <array>
#include <memory>

namespace gantry::cli {
namespace {

struct DoctorOptions {
  doctor::Selection selection;
  std::string explain;
  bool list = false;
  bool markdown = false;
  bool fix = false;
  std::string fix_names;  // "a,b"
};

int list_checks(const DoctorOptions& options, const Context& context) {
  const auto text = options.markdown ? doctor::list_markdown()
                    : context.json   ? doctor::list_json()
                                     : doctor::list_text();
  fmt::print(context.out, "{}", text);
  return kOk;
}

int explain(const DoctorOptions& options, const Context& context) {
  bool any = false;
  for (const auto* check : doctor::all_checks()) {
    if (!doctor::matches(*check, options.explain)) continue;
    fmt::print(context.out, "{}{}", any ? "\n" : "", doctor::explain_text(*check, {}));
    any = true;
  }
  if (any) return kOk;
  fmt::print(context.err, "gantry doctor: there is no check {}; `gantry doctor --list` shows all\n",
             options.explain);
  return kUsage;
}

bool ask(const doctor::Outcome& outcome, const std::vector<doctor::Action>& actions) {
  fmt::print(stderr, "{}: {}\n  this would:\n", outcome.check->id, outcome.finding.summary);
  for (const auto& action : actions) fmt::print(stderr, "    {}\n", doctor::describe(action));
  fmt::print(stderr, "  Do this for {}? [y/N] ", outcome.check->id);
  std::array<char, 64> answer{};
  if (std::fgets(answer.data(), answer.size(), stdin) == nullptr) return false;
  return trim(answer.data()) == "y" || trim(answer.data()) == "yes";
}

doctor::FixOptions fix_options(const DoctorOptions& options, const Context& context) {
  doctor::FixOptions fix;
  for (auto name : split(options.fix_names, ',')) fix.named.emplace_back(trim(name));
  const bool person = !context.json && ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1;
  if (person) fix.ask = ask;
  return fix;
}

bool safe_fix_waits(const std::vector<doctor::Outcome>& outcomes, const doctor::Facts& facts) {
  for (const auto& outcome : outcomes) {
    const bool bad = outcome.finding.verdict == doctor::Verdict::Warn ||
                     outcome.finding.verdict == doctor::Verdict::Fail;
    if (bad && outcome.check->fix_class == doctor::FixClass::Automatic &&
        !outcome.check->fix(facts).empty()) {
      return true;
    }
  }
  return false;
}

Result<int> examine(const DoctorOptions& options, const Context& context) {
  const auto checks = doctor::select(options.selection);
  const auto named = doctor::select({.only = fix_options(options, context).named, .skip = {}});
  for (const auto* wrong : {&checks, &named}) {
    if (wrong->ok()) continue;
    fmt::print(context.err, "gantry doctor: {}\n", wrong->error().text());
    return kUsage;
  }
  GANTRY_TRY(const auto host, open_host(context));
  GANTRY_TRY(auto inventory, probe::snapshot(host, {}));
  const auto sources = doctor::live_sources();
  doctor::Repair repair;
  if (options.fix) {
    // A look that fails after a change shows the machine as it was last seen.
    const auto look = [&] {
      auto seen = probe::snapshot(host, {});
      if (seen.ok()) inventory = *std::move(seen);
      return inventory;
    };
    const auto kernel = sys::real_kernel();
    repair = doctor::repair(host, look, sources, *checks, fix_options(options, context), *kernel);
  }
  const doctor::Facts facts(host, inventory, sources);
  if (!options.fix) repair.outcomes = doctor::examine(facts, *checks);
  if (context.json) {
    fmt::print(context.out, "{}",
               doctor::report_json(repair.outcomes, repair.fixes, facts.guest()));
  } else {
    const doctor::Style style{.color = context.color};
    if (options.fix) fmt::print(context.out, "{}", doctor::fixes_text(repair.fixes, style));
    fmt::print(context.out, "{}", doctor::report_text(repair.outcomes, style));
    if (!options.fix && safe_fix_waits(repair.outcomes, facts)) {
      fmt::print(context.out, "Safe remedies can be applied: sudo gantry doctor --fix\n");
    }
  }
  return doctor::count(repair.outcomes).fail == 0 ? kOk : kProblem;
}

Result<int> run(const DoctorOptions& options, const Context& context) {
  if (options.list) return list_checks(options, context);
  if (!options.explain.empty()) return explain(options, context);
  return examine(options, context);
}

}  // namespace

void add_doctor(CLI::App& app, Context& context, Action& chosen) {
  auto options = std::make_shared<DoctorOptions>();
  auto* command =
      app.add_subcommand("doctor", "Say what is wrong with this machine's GPUs and why");
  add_machine_options(*command, context);
  command->add_option("--only", options->selection.only, "Only these: ids, patterns, numbers (H15)")
      ->delimiter(',')
      ->type_name("ID,...");
  command->add_option("--skip", options->selection.skip, "Not these")
      ->delimiter(',')
      ->type_name("ID,...");
  command->add_option("--explain", options->explain, "Tell what one check is about")
      ->type_name("ID");
  auto* list = command->add_flag("--list", options->list, "List all checks");
  command->add_flag("--markdown", options->markdown, "With --list: as the table of docs/doctor.md")
      ->needs(list);
  auto* fix = command
                  ->add_option("--fix", options->fix_names,
                               "Apply safe remedies; risky ones when named or confirmed")
                  ->expected(0, 1)
                  ->type_name("[ID,...]");
  add_examples(*command,
               "  gantry doctor                        # look, change nothing\n"
               "  gantry doctor --explain numa.unknown\n"
               "  sudo gantry doctor --fix             # make nodes, load modules\n"
               "  sudo gantry doctor --fix=persistence.off\n"
               "  gantry doctor --json --only 'node.*'");
  command->callback([options, fix, &chosen] {
    options->fix = fix->count() > 0;
    chosen = [options](Context& ctx) { return run(*options, ctx); };
  });
}

}  // namespace gantry::cli
