// SPDX-License-Identifier: Apache-2.0
// Shares of GPUs: the share daemon, its auditor's findings, and the libraries that enforce limits.
#include "base/core/text.hpp"
#include "base/sys/shell_command.hpp"
#include "doctor/checks/check_tables_internal.hpp"
#include "doctor/engine/run_checks.hpp"
#include "doctor/engine/tally.hpp"
#include "sharing/policy/paths.hpp"

#include <fmt/format.h>

#include <set>

namespace gantry::doctor {
namespace {

constexpr std::size_t kFewVersions = 2;  // the agent's, and the one before
constexpr std::int64_t kRecentSeconds = 3600;

// A Skip if the shares cannot be checked; nullopt if they can.
std::optional<Finding> nothing_to_say(const Facts& f) {
  const auto* view = f.shares();
  if (view == nullptr) return skip("the share daemon was not asked");
  if (view->only_root) return skip_needs_root(policy::kSharesDirectory);
  if (view->names.empty() && view->unreadable.empty()) return skip("there are no shares here");
  return std::nullopt;
}

Finding judge_daemon(const Facts& f) {
  if (auto nothing = nothing_to_say(f)) return *std::move(nothing);
  const auto& view = *f.shares();
  const auto records = join_names(view.names);
  std::vector<Evidence> read;
  if (!view.names.empty()) read.push_back({std::string(policy::kSharesDirectory), records});
  for (const auto& problem : view.unreadable)
    read.push_back({std::string(policy::kSharesDirectory), problem});
  if (!view.no_answer_reason.empty()) {
    read.push_back({std::string(policy::kControlSocket), view.no_answer_reason});
    if (view.hung_pid != 0)
      return fail(fmt::format("the share daemon hangs, and there are shares: {}", records), read)
          .because(
              "The process exists, but does not run: it was stopped, or waits in the kernel. "
              "Limits still hold for ten seconds; then programs with a hard cap fail with 802 "
              "(system not ready). Its watchdog (`gantry share watch`) would have replaced "
              "it, so that does not run either.")
          .advise(fmt::format("sudo kill -9 {}; sudo gantry share ls{}  # starts another daemon "
                              "with the same shares",
                              view.hung_pid, sys::root_flag(f.host())));
    return fail(fmt::format("the share daemon does not answer, but there are shares: {}", records),
                read)
        .advise(fmt::format("sudo gantry share ls{}  # starts the daemon with the same shares",
                            sys::root_flag(f.host())));
  }
  if (!view.unreadable.empty())
    return warn("a share's record cannot be read: the share daemon ignores that share", read)
        .because("The file was edited, or another version of Gantry wrote it.")
        .advise(
            fmt::format("sudo less {}/*/share.json  # then create it again: gantry share create",
                        policy::kSharesDirectory));
  return ok(fmt::format("the share daemon answers for {}", records), read);
}

Finding judge_over(const Facts& f) {
  if (auto nothing = nothing_to_say(f)) return *std::move(nothing);
  const auto& view = *f.shares();
  if (!view.no_answer_reason.empty())
    return skip("the share daemon does not answer: see shares.keeper");
  std::vector<Evidence> read;
  std::set<std::string> names;
  for (const auto& found : view.findings) {
    if (found.seconds_ago > kRecentSeconds) continue;
    names.insert(found.share);
    read.push_back({fmt::format("auditor, {} s ago", found.seconds_ago),
                    found.text + (found.stopped ? " (stopped)" : "")});
  }
  if (names.empty()) return ok("the auditor found no process beyond a limit in the last hour");
  const std::vector<std::string> who(names.begin(), names.end());
  return warn(fmt::format("beyond its limits, or not controlled by the fence: {}", join_names(who)),
              read)
      .advise(fmt::format("gantry share top{0} --once; gantry share set{0} {1} --policy stop  # "
                          "kills such processes from now on",
                          sys::root_flag(f.host()), who.front()));
}

Finding judge_foreign_processes(const Facts& f) {
  if (auto nothing = nothing_to_say(f)) return *std::move(nothing);
  const auto& view = *f.shares();
  if (!view.no_answer_reason.empty())
    return skip("the share daemon does not answer: see shares.keeper");
  std::vector<Evidence> read;
  std::set<std::string> gpus;
  for (const auto& one : view.beside) {
    gpus.insert(one.gpu);
    read.push_back(
        {one.gpu, fmt::format("process {} ({}) has {}", one.pid, one.command, one.memory)});
  }
  if (gpus.empty()) return ok("only shares use the GPUs that have compute limits");
  return warn(fmt::format(
                  "also used by processes without a share, which no compute limit slows down: {}",
                  join_names({gpus.begin(), gpus.end()})),
              read)
      .advise(fmt::format(
          "gantry share run{} --help  # runs a command in its own share; or use another GPU for it",
          sys::root_flag(f.host())));
}

Finding judge_libraries(const Facts& f) {
  const auto* view = f.shares();
  if (view == nullptr) return skip("the share daemon was not asked");
  if (view->libraries.empty()) return skip("the fence is not installed here");
  std::vector<Evidence> read;
  bool bad = false;
  bool any = false;
  for (const auto& library : view->libraries) {
    read.push_back({library.path, library.trouble.empty() ? "fits" : library.trouble});
    bad = bad || !library.trouble.empty();
    any = any || library.there;
  }
  if (!bad) return ok("the fence's libraries are installed and of this version", read);
  if (!any && view->names.empty()) return skip("the fence is not installed here", read);
  return fail(
      "the fence's libraries are missing or of another version: programs of a share would not "
      "start",
      read);
}

// Gantry does not remove older copies: a stopped container from before an upgrade needs its copy to
// start again, and only its engine's records contain that path.
Finding judge_copies(const Facts& f) {
  const auto names = f.host().list(policy::kFenceCopies);
  if (!names.ok()) return skip("engines here use the installed fence, not copies of it");
  std::uint64_t bytes = 0;
  std::size_t versions = 0;
  for (const auto& digest : *names) {
    const auto place = fmt::format("{}/{}", policy::kFenceCopies, digest);
    for (const auto& file : f.host().list(place).value_or({})) {
      const auto known = f.host().info(fmt::format("{}/{}", place, file));
      if (known.ok()) bytes += known->size;
      if (file == "libgantry-fence.so") ++versions;
    }
  }
  const auto all = fmt::format("{} of the fence, {} in all",
                               versions == 1 ? "one version" : fmt::format("{} versions", versions),
                               human_bytes(bytes));
  const std::vector<Evidence> read{{std::string(policy::kFenceCopies), all}};
  return versions <= kFewVersions ? ok(all, read) : info(all, read);
}

constexpr Check kSharesChecks[] = {
    {.id = "shares.keeper",
     .reference = "S1",
     .area = Area::Runtime,
     .fix_class = FixClass::Never,
     .title = "the share daemon runs if there are shares",
     .reads = "/run/gantry/shares, /run/gantry/keeper.sock",
     .cause =
         "The share daemon (`gantry share serve`) and its watchdog were killed, perhaps because "
         "memory ran out: limits still hold for ten seconds, then programs with a hard cap "
         "fail with 802 (system not ready), and so do new programs of a share. See the end of "
         "/run/gantry/keeper.log.",
     .remedy = "sudo gantry share ls",
     .judge = judge_daemon},
    {.id = "shares.over",
     .reference = "S2",
     .area = Area::Runtime,
     .fix_class = FixClass::Never,
     .title = "no process is beyond the limits of its share",
     .reads = "the share daemon's auditor",
     .cause = "A program has its own libcuda or calls the driver directly, or a policy lets it run "
              "without the fence; or the limit was lowered below what it already used.",
     .remedy = "gantry share top --once",
     .judge = judge_over},
    {.id = "shares.libraries",
     .reference = "S3",
     .area = Area::Runtime,
     .fix_class = FixClass::Never,
     .title = "the fence's libraries are installed and of this version",
     .reads = "libgantry-fence.so and libgantry-fence-nvml.so next to the program",
     .cause = "An upgrade replaced the program but not its libraries, or the other way round.",
     .remedy = "reinstall gantry, or set GANTRY_FENCE_LIBRARIES to the libraries' directory",
     .judge = judge_libraries},
    {.id = "shares.beside",
     .reference = "S4",
     .area = Area::Runtime,
     .fix_class = FixClass::Never,
     .title = "only shares use the GPUs that have compute limits",
     .reads = "the share daemon's list of processes on each GPU",
     .cause = "A program was started on the host, or in a container with the whole GPU: no compute "
              "limit applies to it, and the time that it takes is missing for the shares.",
     .remedy = "start it with gantry share run, or on another GPU",
     .judge = judge_foreign_processes},
    {.id = "shares.copies",
     .reference = "S5",
     .area = Area::Runtime,
     .fix_class = FixClass::Never,
     .title = "the host has few versions of the fence",
     .reads = policy::kFenceCopies,
     .cause =
         "Every version of the agent's image leaves a copy of the fence for containers that were "
         "created with it; a stopped container needs its copy to start again, so Gantry removes "
         "none.",
     .remedy = "when no container with a share is left (kubectl drain): sudo rm -r "
               "/var/lib/gantry/fence, then restart the agent, which copies its version again",
     .judge = judge_copies},
};

}  // namespace

std::span<const Check> share_checks() {
  return kSharesChecks;
}

}  // namespace gantry::doctor
