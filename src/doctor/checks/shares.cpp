// SPDX-License-Identifier: Apache-2.0
// Shares of GPUs: their keeper, what its auditor found, and the libraries that hold their limits.
#include "base/core/text.hpp"
#include "doctor/checks/check_tables_internal.hpp"
#include "doctor/engine/run_checks.hpp"
#include "doctor/engine/tally.hpp"

#include <fmt/format.h>

#include <set>

namespace gantry::doctor {
namespace {

constexpr std::string_view kShares = "/run/gantry/shares";
constexpr std::string_view kSocket = "/run/gantry/keeper.sock";
constexpr std::string_view kCopies = "/var/lib/gantry/fence";  // an agent in a pod puts them there
constexpr std::size_t kFewVersions = 2;                        // the agent's, and the one before
constexpr std::int64_t kRecentSeconds = 3600;

// Why nothing can be said of the shares; nullopt: it can.
std::optional<Finding> nothing_to_say(const Facts& f) {
  const auto* view = f.shares();
  if (view == nullptr) return skip("nobody was asked for shares");
  if (view->only_root) return skip_needs_root(kShares);
  if (view->names.empty() && view->unreadable.empty()) return skip("there are no shares here");
  return std::nullopt;
}

Finding judge_daemon(const Facts& f) {
  if (auto nothing = nothing_to_say(f)) return *std::move(nothing);
  const auto& view = *f.shares();
  const auto records = join_names(view.names);
  std::vector<Evidence> read;
  if (!view.names.empty()) read.push_back({std::string(kShares), records});
  for (const auto& problem : view.unreadable) read.push_back({std::string(kShares), problem});
  if (!view.no_answer_reason.empty()) {
    read.push_back({std::string(kSocket), view.no_answer_reason});
    return fail(fmt::format("no keeper answers for the shares that there are: {}", records), read)
        .advise(fmt::format("sudo gantry share ls{}  # starts it, with the same shares",
                            root_flag(f.host())));
  }
  if (!view.unreadable.empty())
    return warn("a share's record cannot be read: that share is not kept", read)
        .because("Somebody wrote into it, or it is from another version.")
        .advise(fmt::format("sudo less {}/*/share.json  # then `gantry share create` it anew",
                            kShares));
  return ok(fmt::format("the keeper answers for {}", records), read);
}

Finding judge_over(const Facts& f) {
  if (auto nothing = nothing_to_say(f)) return *std::move(nothing);
  const auto& view = *f.shares();
  if (!view.no_answer_reason.empty()) return skip("no keeper answers: shares.keeper");
  std::vector<Evidence> read;
  std::set<std::string> names;
  for (const auto& found : view.findings) {
    if (found.seconds_ago > kRecentSeconds) continue;
    names.insert(found.share);
    read.push_back({fmt::format("auditor, {} s ago", found.seconds_ago),
                    found.text + (found.stopped ? " (stopped)" : "")});
  }
  if (names.empty()) return ok("the auditor found nobody past a limit in the last hour");
  const std::vector<std::string> who(names.begin(), names.end());
  return warn(fmt::format("past its limits, or past the fence: {}", join_names(who)), read)
      .advise(fmt::format("gantry share top{0} --once; gantry share set{0} {1} --policy stop  # "
                          "ends such processes from now on",
                          root_flag(f.host()), who.front()));
}

Finding judge_foreign_processes(const Facts& f) {
  if (auto nothing = nothing_to_say(f)) return *std::move(nothing);
  const auto& view = *f.shares();
  if (!view.no_answer_reason.empty()) return skip("no keeper answers: shares.keeper");
  std::vector<Evidence> read;
  std::set<std::string> gpus;
  for (const auto& one : view.beside) {
    gpus.insert(one.gpu);
    read.push_back(
        {one.gpu, fmt::format("process {} ({}) has {}", one.pid, one.command, one.memory)});
  }
  if (gpus.empty()) return ok("nobody is on their GPUs beside shares that have limits of time");
  return warn(fmt::format("used beside its shares, whose limits of time do not hold that back: {}",
                          join_names({gpus.begin(), gpus.end()})),
              read)
      .advise(
          fmt::format("gantry share run{} --help  # gives a command a share of its own; another "
                      "GPU keeps them apart",
                      root_flag(f.host())));
}

Finding judge_libraries(const Facts& f) {
  const auto* view = f.shares();
  if (view == nullptr) return skip("nobody was asked for shares");
  if (view->libraries.empty()) return skip("the fence is not installed here");
  std::vector<Evidence> read;
  bool bad = false;
  bool any = false;
  for (const auto& library : view->libraries) {
    read.push_back({library.path, library.trouble.empty() ? "fits" : library.trouble});
    bad = bad || !library.trouble.empty();
    any = any || library.there;
  }
  if (!bad) return ok("the fence's libraries are there and of this version", read);
  if (!any && view->names.empty()) return skip("the fence is not installed here", read);
  return fail("the fence's libraries do not fit: programs of a share would not start", read);
}

// Nothing removes the older ones: a container that was made before an upgrade and is stopped now
// has their path in its engine's own records, which nobody but the engine can read.
Finding judge_copies(const Facts& f) {
  const auto names = f.host().list(kCopies);
  if (!names.ok()) return skip("engines here use the fence where it is installed");
  std::uint64_t bytes = 0;
  std::size_t versions = 0;
  for (const auto& digest : *names) {
    const auto place = fmt::format("{}/{}", kCopies, digest);
    for (const auto& file : f.host().list(place).value_or({})) {
      const auto known = f.host().info(fmt::format("{}/{}", place, file));
      if (known.ok()) bytes += known->size;
      if (file == "libgantry-fence.so") ++versions;
    }
  }
  const auto all = fmt::format("{} of the fence, {} in all",
                               versions == 1 ? "one version" : fmt::format("{} versions", versions),
                               human_bytes(bytes));
  const std::vector<Evidence> read{{std::string(kCopies), all}};
  return versions <= kFewVersions ? ok(all, read) : info(all, read);
}

constexpr Check kSharesChecks[] = {
    {.id = "shares.keeper",
     .reference = "S1",
     .area = Area::Runtime,
     .fix_class = FixClass::Never,
     .title = "shares of GPUs have their keeper",
     .reads = "/run/gantry/shares, /run/gantry/keeper.sock",
     .cause = "The keeper (`gantry share serve`) was killed, for want of memory perhaps: limits on "
              "memory go on to hold, those on time do not, and new programs of a share are refused "
              "with 802 (system not ready). /run/gantry/keeper.log has its last words.",
     .remedy = "sudo gantry share ls",
     .judge = judge_daemon},
    {.id = "shares.over",
     .reference = "S2",
     .area = Area::Runtime,
     .fix_class = FixClass::Never,
     .title = "no process is past the limits of its share",
     .reads = "the keeper's auditor",
     .cause = "A program brought its own libcuda or talks to the driver itself, or a policy lets "
              "it run unattached; or the limit was made smaller than what it held.",
     .remedy = "gantry share top --once",
     .judge = judge_over},
    {.id = "shares.libraries",
     .reference = "S3",
     .area = Area::Runtime,
     .fix_class = FixClass::Never,
     .title = "the fence's libraries are there and of this version",
     .reads = "libgantry-fence.so and libgantry-fence-nvml.so beside the program",
     .cause = "An upgrade that replaced the program and not its libraries, or the other way round.",
     .remedy = "reinstall gantry, or name the libraries' directory with GANTRY_FENCE_LIBRARIES",
     .judge = judge_libraries},
    {.id = "shares.beside",
     .reference = "S4",
     .area = Area::Runtime,
     .fix_class = FixClass::Never,
     .title = "nobody uses their GPUs beside shares with limits of time",
     .reads = "the keeper's picture of each GPU",
     .cause = "A program was started on the host, or in a container with the whole GPU: no turn "
              "holds it back, and the shares do not have what it takes.",
     .remedy = "gantry share run, or another GPU for it",
     .judge = judge_foreign_processes},
    {.id = "shares.copies",
     .reference = "S5",
     .area = Area::Runtime,
     .fix_class = FixClass::Never,
     .title = "few versions of the fence lie on the host",
     .reads = kCopies,
     .cause = "Every version of the agent's image leaves its copy of the fence for containers that "
              "were made with it; a stopped one needs it to start again, so nothing removes them.",
     .remedy = "with no container left that has a share (kubectl drain): sudo rm -r "
               "/var/lib/gantry/fence, then restart the agent, which puts its own there",
     .judge = judge_copies},
};

}  // namespace

std::span<const Check> share_checks() {
  return kSharesChecks;
}

}  // namespace gantry::doctor
